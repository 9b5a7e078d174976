// SPDX-License-Identifier: Apache-2.0
#include "model/fault.h"

#include "absl/strings/cord.h"

namespace ecpipe {
namespace {

constexpr char kFaultNode[] = "ecpipe/fault-node";

}  // namespace

absl::Status WithFault(absl::Status status, const std::string& node) {
  if (!status.ok() && !node.empty() && !status.GetPayload(kFaultNode)) {
    status.SetPayload(kFaultNode, absl::Cord(node));
  }
  return status;
}

std::string FaultOf(const absl::Status& status) {
  const auto node = status.GetPayload(kFaultNode);
  return node ? std::string(*node) : "";
}

absl::Status FromPeer(const absl::Status& status, const std::string& sender) {
  if (FaultOf(status) != kFaultSelf) return status;
  absl::Status from_sender = status;
  from_sender.SetPayload(kFaultNode, absl::Cord(sender));
  return from_sender;
}

}  // namespace ecpipe
