// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "requestor/cli/commands.h"

namespace ecpipe {

// `ecpipe doctor`. UNAVAILABLE or DEADLINE_EXCEEDED: the coordinator does not answer. ABORTED:
// something is wrong; warnings alone are no error.
absl::Status RunDoctor(const CommonArguments& common);

}  // namespace ecpipe
