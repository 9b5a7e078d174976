// SPDX-License-Identifier: Apache-2.0
// The schemes, each a function that writes the lanes of a plan. Their requests have passed
// MakePlan's checks.
#pragma once

#include "coordinator/planning/planner.h"

namespace ecpipe {

using PlanLanes = std::vector<PlanLane>;

// In all schemes the rows of failed blocks that go to one requestor travel together.

// §2.2: every helper sends to the requestor. For one failed block helpers send their weighted
// block, and the requestor adds them up: k timeslots. For several failed blocks, or several rows of
// one, helpers send the bytes of their block unchanged to the first requestor, which computes all
// failed blocks and forwards those of the other requestors: k + f - 1 timeslots.
absl::StatusOr<PlanLanes> PlanConventional(const PlanRequest& request);

// §2.2, partial-parallel repair (Mitra et al., EuroSys'16): a binomial tree over the helpers and
// the requestor, ceil(log2(k + 1)) timeslots for one failed block. Several failed blocks travel the
// tree side by side and the first requestor forwards those that others want.
absl::StatusOr<PlanLanes> PlanPpr(const PlanRequest& request);

// §3.2 and §4.4: a path through all helpers; the last one sends each failed block to its requestor.
// f (1 + (k - 1) / s) timeslots for f failed blocks in s slices.
absl::StatusOr<PlanLanes> PlanRepairPipelining(const PlanRequest& request);

// Beyond the paper, for f > 1 failed blocks: a path f rows wide for a share of the slices, and for
// the rest stars into each of the requestors in turn, both at once. The path loads helpers' links
// and the stars the requestors'. With f requestors 1 + (f - 1)(k - 1) / (k - 1 + f(f - 1))
// timeslots: 2.29 for (14, 10) and f = 4, where a path takes 4. docs/design/002-schemes.md has the
// derivation. With one requestor it is a path.
absl::StatusOr<PlanLanes> PlanMixed(const PlanRequest& request);

// §4.1: min(k - 1, s) lanes, each the same ring of helpers begun at another one; slice i travels on
// lane i mod (k - 1). The requestor reads from k - 1 helpers in parallel, so that no single link
// into it limits the repair. 1 + (k - 1) / s timeslots over equal links.
absl::StatusOr<PlanLanes> PlanCyclic(const PlanRequest& request);

// Beyond the paper, by all_survivors.h: lanes over different k of all survivors, so that each
// helper's link carries as much as it can. With the requestor's link not in the way the time is
// k / (n - 1) of rp's for equal links. Where the code cannot use a lane's helpers, it is rp.
absl::StatusOr<PlanLanes> PlanAllSurvivors(const PlanRequest& request);

// §4.2 and §4.3: repair pipelining over the paths of helper_paths.h.
absl::StatusOr<PlanLanes> PlanRackAware(const PlanRequest& request);
absl::StatusOr<PlanLanes> PlanWeighted(const PlanRequest& request);

// One helper sends its block unchanged. For blocks that are not lost.
absl::StatusOr<PlanLanes> PlanDirect(const PlanRequest& request);

}  // namespace ecpipe
