// SPDX-License-Identifier: Apache-2.0
// Repair parts between the wire and the engine.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ecpipe/v1/plan.pb.h"
#include "model/checksum_kind.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {

v1::RepairPart PartToProto(const RepairPart& part);

// INVALID_ARGUMENT for anything that ValidatePart refuses; what is returned is safe to run.
absl::StatusOr<RepairPart> PartFromProto(const v1::RepairPart& proto);

inline std::vector<uint8_t> BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

v1::ChecksumKind ChecksumToProto(const ChecksumKind& kind);
// Returns nothing if it is absent, or has a type that this build does not know.
std::optional<ChecksumKind> ChecksumFromProto(const v1::ChecksumKind& proto);

v1::Transport TransportToProto(TransportKind kind);
// Unspecified becomes `fallback`; INVALID_ARGUMENT for a transport that this build does not know.
absl::StatusOr<TransportKind> TransportFromProto(v1::Transport transport, TransportKind fallback);

// INVALID_ARGUMENT for a row that is not below kMaxRows.
absl::StatusOr<std::vector<Row>> RowsFromProto(
    const google::protobuf::RepeatedField<uint32_t>& proto);

// As LaneSlices::Create.
absl::StatusOr<LaneSlices> RunsFromProto(
    const google::protobuf::RepeatedPtrField<v1::SliceRun>& proto, uint32_t slice_count);
void RunsToProto(const LaneSlices& slices, google::protobuf::RepeatedPtrField<v1::SliceRun>* runs);

}  // namespace ecpipe
