// SPDX-License-Identifier: Apache-2.0
// The schemes, each a function that writes a lane. Their requests have passed MakePlan's checks.
#pragma once

#include "coordinator/planner.h"

namespace ecpipe {

// §2.2: every helper sends to the requestor. One failed block: helpers send their weighted block
// and the requestor adds up: k timeslots. Several: they send the block as it is to the first
// requestor, which computes all failed blocks and forwards those that others want: k + f - 1
// timeslots.
PlanLane PlanConventional(const PlanRequest& request);

// §2.2, partial-parallel repair (Mitra et al., EuroSys'16): a binomial tree over the helpers and
// the requestor, ceil(log2(k + 1)) timeslots for one failed block. Several failed blocks travel the
// tree side by side and the first requestor forwards those that others want.
PlanLane PlanPpr(const PlanRequest& request);

// §3.2 and §4.4: a path through all helpers; the last one sends each failed block to its requestor.
// f (1 + (k - 1) / s) timeslots for f failed blocks in s slices.
PlanLane PlanRepairPipelining(const PlanRequest& request);

// One helper sends a block as it is. For blocks that are there.
PlanLane PlanDirect(const PlanRequest& request);

}  // namespace ecpipe
