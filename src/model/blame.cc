// SPDX-License-Identifier: Apache-2.0
#include "model/blame.h"

#include "absl/strings/cord.h"

namespace ecpipe {
namespace {

constexpr char kBlamedNode[] = "ecpipe/blamed-node";

}  // namespace

absl::Status Blame(absl::Status status, const std::string& node) {
  if (!status.ok() && !node.empty() && !status.GetPayload(kBlamedNode)) {
    status.SetPayload(kBlamedNode, absl::Cord(node));
  }
  return status;
}

std::string BlamedBy(const absl::Status& status) {
  const auto node = status.GetPayload(kBlamedNode);
  return node ? std::string(*node) : "";
}

absl::Status FromPeer(const absl::Status& status, const std::string& sender) {
  if (BlamedBy(status) != kBlameSelf) return status;
  absl::Status blamed = status;
  blamed.SetPayload(kBlamedNode, absl::Cord(sender));
  return blamed;
}

}  // namespace ecpipe
