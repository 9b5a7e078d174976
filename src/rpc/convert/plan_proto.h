// SPDX-License-Identifier: Apache-2.0
// Repair plans as the coordinator explains them.
#pragma once

#include "absl/status/statusor.h"
#include "ecpipe/v1/coordinator.pb.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

// INVALID_ARGUMENT: a value is out of range. INTERNAL: ValidatePlan refuses the plan.
absl::StatusOr<RepairPlan> PlanFromProto(const v1::ExplainRepairResponse& proto);

}  // namespace ecpipe
