// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

// Prints the configuration by which the helper of `node` runs, as a configuration file; an empty
// `node` is the coordinator. NOT_FOUND: no such node. UNAVAILABLE: its helper is dead.
absl::Status RunConfig(const CommonArguments& common, const std::string& node);

}  // namespace ecpipe
