// SPDX-License-Identifier: Apache-2.0
// Repair plans as the coordinator explains them.
#pragma once

#include "absl/status/statusor.h"
#include "common/repair_plan.h"
#include "ecpipe/v1/coordinator.pb.h"

namespace ecpipe {

// INVALID_ARGUMENT for what no plan can hold, INTERNAL for anything else that ValidatePlan refuses.
absl::StatusOr<RepairPlan> PlanFromProto(const v1::ExplainRepairResponse& proto);

}  // namespace ecpipe
