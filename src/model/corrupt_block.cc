// SPDX-License-Identifier: Apache-2.0
#include "model/corrupt_block.h"

#include "absl/strings/cord.h"

namespace ecpipe {
namespace {

constexpr char kCorruptBlock[] = "ecpipe/corrupt-block";

}  // namespace

absl::Status CorruptBlockError(const std::string& block_id, const std::string& message) {
  absl::Status status = absl::DataLossError(message);
  status.SetPayload(kCorruptBlock, absl::Cord(block_id));
  return status;
}

absl::Status CheckStoredAs(const std::string& block_id, const std::string& stored,
                           const std::string& expected) {
  if (stored.empty() || expected.empty() || stored == expected) return absl::OkStatus();
  return CorruptBlockError(block_id, "block " + block_id +
                                         " is another one than the catalog has: it was stored with "
                                         "SHA-256 " +
                                         stored + ", expected " + expected);
}

std::string CorruptBlockOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kCorruptBlock);
  return payload ? std::string(*payload) : std::string();
}

}  // namespace ecpipe
