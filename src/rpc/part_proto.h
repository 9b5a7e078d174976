// SPDX-License-Identifier: Apache-2.0
// Repair parts between the wire and the engine.
#pragma once

#include "absl/status/statusor.h"
#include "common/repair_plan.h"
#include "ecpipe/v1/plan.pb.h"

namespace ecpipe {

v1::RepairPart PartToProto(const RepairPart& part);

// INVALID_ARGUMENT for anything that ValidatePart refuses; what is returned is safe to run.
absl::StatusOr<RepairPart> PartFromProto(const v1::RepairPart& proto);

v1::Transport TransportToProto(TransportKind kind);
// Unspecified becomes `fallback`; INVALID_ARGUMENT for a transport that this build does not know.
absl::StatusOr<TransportKind> TransportFromProto(v1::Transport transport, TransportKind fallback);

void RunsToProto(const LaneSlices& slices, google::protobuf::RepeatedPtrField<v1::SliceRun>* runs);

}  // namespace ecpipe
