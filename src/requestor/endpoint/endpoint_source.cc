// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_source.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "codec/kernel_check.h"
#include "requestor/client/coordinator_client.h"

namespace ecpipe {
namespace {

// One of its own, since a Requestor cancels all of its calls.
class RequestorSource : public RepairSource {
 public:
  explicit RequestorSource(std::unique_ptr<Requestor> requestor)
      : requestor_(std::move(requestor)) {}

  absl::StatusOr<RepairReport> Read(const EndpointRequest& request, const PiecesSink& sink,
                                    const BegunFn& begun) override {
    RepairTarget target;
    for (const EndpointRequest::Target& block : request.targets) {
      target.block_ids.push_back(block.block_id);
    }
    target.facts = request.facts;
    target.claim = request.claim;
    target.offset = request.offset;
    target.bytes = request.bytes();
    target.scheme = request.scheme;
    target.background = request.background;
    return requestor_->ReadSeveral(target, sink, nullptr, begun);
  }

  void Cancel(const absl::Status& why) override { requestor_->Cancel(why); }

 private:
  const std::unique_ptr<Requestor> requestor_;
};

}  // namespace

absl::StatusOr<RepairSourceFactory> RequestorSources(RequestorOptions options) {
  ECPIPE_RETURN_IF_ERROR(CheckKernel());
  ECPIPE_ASSIGN_OR_RETURN(const auto connection,
                          CoordinatorConnection::Open(options.coordinator, options.tls));
  return [options = std::move(options), connection](
             const EndpointRequest& request) -> absl::StatusOr<std::unique_ptr<RepairSource>> {
    RequestorOptions own = options;
    // A client that does not wait that long for its first byte is better served by an error.
    own.call_timeout = std::min(own.call_timeout, request.timeout);
    if (!request.client.empty()) own.name = request.client;
    std::unique_ptr<CoordinatorApi> coordinator = connection->Client(own.call_timeout);
    return std::make_unique<RequestorSource>(
        std::make_unique<Requestor>(std::move(coordinator), std::move(own)));
  };
}

}  // namespace ecpipe
