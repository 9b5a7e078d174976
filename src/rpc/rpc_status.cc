// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_status.h"

#include "base/bytes/utf8_text.h"
#include "model/fault.h"

namespace ecpipe {

grpc::Status ToGrpc(const absl::Status& status) {
  constexpr size_t kMaxMessageBytes = 4096;  // gRPC refuses header lists over 8 KiB
  const absl::StatusCode code =
      absl::IsCancelled(status) ? absl::StatusCode::kAborted : status.code();
  return grpc::Status(static_cast<grpc::StatusCode>(code),
                      std::string(CutText(std::string(status.message()), kMaxMessageBytes)));
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& peer) {
  if (status.ok()) return absl::OkStatus();
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return absl::UnavailableError(
        peer + ": it is shutting down, and may or may not have carried out the call (" +
        status.error_message() + ")");
  }
  return StatusFromWire(status.error_code(), peer + ": " + status.error_message());
}

absl::Status StatusFromWire(int code, const std::string& message, const std::string& fault_node) {
  if (code == 0) return absl::OkStatus();
  const bool known = code >= 1 && code <= 16;
  return WithFault(
      absl::Status(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                   message),
      fault_node);
}

}  // namespace ecpipe
