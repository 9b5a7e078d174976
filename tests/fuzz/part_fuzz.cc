// SPDX-License-Identifier: Apache-2.0
// Repair parts from the network: refused, with FAILED_PRECONDITION if they need what this version
// lacks, otherwise with INVALID_ARGUMENT, or valid and the same after a round trip.
#include "base/check.h"
#include "rpc/convert/part_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::v1::RepairPart proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto part = ecpipe::PartFromProto(proto);
  if (!part.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(part.status()) ||
                 (absl::IsFailedPrecondition(part.status()) && proto.needs_size() > 0));
    return 0;
  }
  ECPIPE_CHECK(ecpipe::ValidatePart(*part).ok());
  ECPIPE_CHECK(part->grid.slice_bytes <= ecpipe::kMaxSliceBytes);
  ECPIPE_CHECK(part->grid.slice_count() <= ecpipe::kMaxSliceCount);
  ECPIPE_CHECK(part->hops.size() <= ecpipe::kMaxPartHops);
  for (const ecpipe::HopSpec& hop : part->hops) {
    ECPIPE_CHECK(hop.lane < ecpipe::kMaxLanes && hop.rows.size() <= ecpipe::kMaxRows);
    ECPIPE_CHECK(hop.slices.SliceIndex(hop.slices.count() - 1) < part->grid.slice_count());
  }
  // Written again it says the same; the first proto may hold more, such as unknown fields.
  const ecpipe::v1::RepairPart written = ecpipe::PartToProto(*part);
  const auto again = ecpipe::PartFromProto(written);
  ECPIPE_CHECK(again.ok());
  ECPIPE_CHECK(ecpipe::PartToProto(*again).SerializeAsString() == written.SerializeAsString());
  return 0;
}
