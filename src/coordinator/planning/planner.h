// SPDX-License-Identifier: Apache-2.0
// Planners write RepairPlans. They are pure: the same arguments give the same plan, and nothing
// outside is read or changed. The schemes are in schemes/, one file each; scheme.h lists them.
#pragma once

#include "absl/status/statusor.h"
#include "coordinator/planning/plan_request.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// INVALID_ARGUMENT for an unknown scheme (the message lists the known ones) or a request that the
// scheme cannot serve.
absl::StatusOr<RepairPlan> MakePlan(const PlanRequest& request);

}  // namespace ecpipe
