// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// Corrupt and suspect blocks for people; empty if there are none.
std::string MarksAsText(const std::vector<CorruptBlockStatus>& blocks);

nlohmann::ordered_json MarkAsJson(const CorruptBlockStatus& block);

}  // namespace ecpipe
