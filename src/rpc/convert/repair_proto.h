// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "ecpipe/v1/coordinator.pb.h"
#include "model/plan/cost.h"
#include "model/repair.h"

namespace ecpipe {

void RepairToProto(const RepairRecord& record, v1::Repair* proto);
// Without what the journal keeps for itself: the range, and the rows that have moved.
RepairRecord RepairFromProto(const v1::Repair& proto);

void GrantToProto(const RepairGrant& grant, v1::BeginRepairResponse* proto);
// The answer to a request with this target. INVALID_ARGUMENT: ValidatePart refuses the part, or
// there is none though no node stores the blocks. FAILED_PRECONDITION: an older coordinator does
// not tell the length of each block.
absl::StatusOr<RepairGrant> GrantFromProto(const v1::BeginRepairResponse& proto,
                                           const v1::RepairTarget& target);

void ResumeToProto(const ResumePoint& point, v1::BeginRepairRequest::Resume* proto);
// Takes the slices as they come: SlicesLeft::Validate checks them.
ResumePoint ResumeFromProto(const v1::BeginRepairRequest::Resume& proto);

// All of the request but the repair and its attempt.
void VerdictToProto(const RepairVerdict& verdict, v1::FinishRepairRequest* proto);
// Without a time to the first byte that no read can have.
RepairVerdict VerdictFromProto(const v1::FinishRepairRequest& proto);

void CostToProto(const PlanCost& cost, v1::PlanCost* proto);
PlanCost CostFromProto(const v1::PlanCost& proto);

void PredictionToProto(const SchemePrediction& prediction,
                       v1::ExplainRepairResponse::Prediction* proto);
// Of the cost the time and the bytes between racks.
SchemePrediction PredictionFromProto(const v1::ExplainRepairResponse::Prediction& proto);

}  // namespace ecpipe
