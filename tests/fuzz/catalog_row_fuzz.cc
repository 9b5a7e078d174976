// SPDX-License-Identifier: Apache-2.0
// The packed columns of the catalog and the journal: DATA_LOSS, or what writing it again gives.
#include <string>

#include "base/bytes/crc32c.h"
#include "base/check.h"
#include "coordinator/sources/sqlite_losses.h"
#include "coordinator/store/packed_ids.h"
#include "coordinator/store/stripe_record.h"
#include "fuzz_input.h"

namespace ecpipe {
namespace {

void CheckMembers(const StripeHeader& header, const std::string& bytes) {
  const auto members = DecodeMembers(header, bytes);
  if (!members.ok()) {
    ECPIPE_CHECK(absl::IsDataLoss(members.status()));
    return;
  }
  ECPIPE_CHECK(!members->empty() && members->size() <= kMaxStripeBlocks);
  for (const StripeMember& member : *members) {
    ECPIPE_CHECK(!member.block_id.empty() && member.block_id.size() <= kMaxCatalogIdBytes);
  }
  const auto again = DecodeMembers(header, EncodeMembers(header, *members));
  ECPIPE_CHECK(again.ok() && *again == *members);
  // The same members under another header are damage.
  const StripeHeader other{header.stripe_id, header.code, header.block_bytes + 1};
  ECPIPE_CHECK(absl::IsDataLoss(DecodeMembers(other, EncodeMembers(header, *members)).status()));
}

// The format's checksum, so that the parser behind it is reached.
std::string WithChecksum(const StripeHeader& header, const std::string& body) {
  std::string covered;
  const auto put = [&](uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) covered.push_back(static_cast<char>(value >> (8 * i)));
  };
  put(header.stripe_id.size(), 4);
  covered += header.stripe_id;
  put(header.code.size(), 4);
  covered += header.code;
  put(header.block_bytes, 8);
  covered += body;
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(covered.data()), covered.size()});
  covered = body;
  put(crc, 4);
  return covered;
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  const std::string stripe_id = input.Text();
  const std::string code = input.Text();
  const ecpipe::StripeHeader header{stripe_id, code, input.Take<uint64_t>()};
  const std::string bytes = input.Rest();
  ecpipe::CheckMembers(header, bytes);
  ecpipe::CheckMembers(header, ecpipe::WithChecksum(header, bytes));
  if (const auto ids = ecpipe::UnpackIds(bytes); ids.ok()) {
    ECPIPE_CHECK(ecpipe::PackIds(*ids) == bytes);
  } else {
    ECPIPE_CHECK(absl::IsDataLoss(ids.status()));
  }
  if (const auto blocks = ecpipe::UnpackBlocks(bytes); blocks.ok()) {
    ECPIPE_CHECK(ecpipe::PackBlocks(*blocks) == bytes);
  } else {
    ECPIPE_CHECK(absl::IsDataLoss(blocks.status()));
  }
  return 0;
}
