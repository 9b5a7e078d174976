// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "base/clock.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// Whether a part may receive at this rate; 0: no limit. A stream is not read until all frames that
// were queued before its own are paid for, one of each other stream of the part, and its sender
// takes a receiver that does not read for dead after its stall timeout (`stall_timeout` here: that
// of a helper is not known). INVALID_ARGUMENT: one round of frames takes more than half of that
// time.
absl::Status CheckReceiveLimit(const RepairPart& part, double bytes_per_second,
                               Duration stall_timeout);

}  // namespace ecpipe
