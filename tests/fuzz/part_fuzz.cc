// SPDX-License-Identifier: Apache-2.0
// Repair parts from the network: refused with INVALID_ARGUMENT, or valid and the same after a round
// trip.
#include "common/check.h"
#include "rpc/part_proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::v1::RepairPart proto;
  if (!proto.ParseFromArray(data, static_cast<int>(size))) return 0;
  const auto part = ecpipe::PartFromProto(proto);
  if (!part.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(part.status()));
    return 0;
  }
  ECPIPE_CHECK(ecpipe::ValidatePart(*part).ok());
  const auto again = ecpipe::PartFromProto(ecpipe::PartToProto(*part));
  ECPIPE_CHECK(again.ok() && again->hops.size() == part->hops.size() && again->grid == part->grid &&
               again->layout == part->layout);
  return 0;
}
