// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/striped_file_client.h"

#include <utility>

#include "base/status.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// What reading relies on.
absl::Status Check(const StripedFile& file, uint64_t offset) {
  uint64_t at = offset;
  for (const StripedFile::Part& part : file.parts) {
    const bool fits = part.offset <= at && part.bytes > 0 && part.offset <= file.bytes &&
                      part.bytes <= file.bytes - part.offset && at - part.offset < part.bytes &&
                      part.cell_bytes > 0 && !part.data_blocks.empty();
    if (!fits) return absl::InvalidArgumentError("the coordinator's parts do not fit together");
    at = part.offset + part.bytes;
  }
  if (offset < file.bytes && file.parts.empty()) {
    return absl::InvalidArgumentError("the coordinator tells of no part at byte " +
                                      std::to_string(offset));
  }
  return absl::OkStatus();
}

class StripedFileGrpcClient : public StripedFileClient {
 public:
  StripedFileGrpcClient(std::string address, Duration timeout,
                        const std::shared_ptr<TlsContext>& tls)
      : address_(std::move(address)),
        timeout_(timeout),
        channel_(MakeChannel(address_, RpcSecurity(tls), Role::kCoordinator)),
        stub_(v1::CoordinatorService::NewStub(channel_)) {}

  absl::StatusOr<StripedFile> FileAt(const std::string& system, const std::string& path,
                                     uint64_t offset) override {
    AwaitReconnection(channel_.get());
    grpc::ClientContext context;
    SetTimeout(&context, timeout_);
    v1::GetFileRequest request;
    request.set_system(system);
    request.set_path(path);
    request.set_offset(offset);
    v1::GetFileResponse response;
    ECPIPE_RETURN_IF_ERROR(
        FromGrpc(stub_->GetFile(&context, request, &response), "coordinator " + address_));
    StripedFile file;
    file.id = response.file_id();
    file.bytes = response.bytes();
    for (const v1::GetFileResponse::Part& part : response.parts()) {
      file.parts.push_back({part.offset(),
                            part.bytes(),
                            part.cell_bytes(),
                            {part.data_blocks().begin(), part.data_blocks().end()}});
    }
    ECPIPE_RETURN_IF_ERROR(Check(file, offset));
    return file;
  }

 private:
  const std::string address_;
  const Duration timeout_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::CoordinatorService::Stub> stub_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StripedFileClient>> MakeStripedFileClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls) {
  ECPIPE_RETURN_IF_ERROR(ParseHostPort(address).status());
  return std::make_unique<StripedFileGrpcClient>(address, timeout, tls);
}

}  // namespace ecpipe
