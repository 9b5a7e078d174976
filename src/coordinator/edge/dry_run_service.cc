// SPDX-License-Identifier: Apache-2.0
// CoordinatorService: what calls that change something would do.
#include <vector>

#include "coordinator/edge/coordinator_service.h"
#include "rpc/rpc_status.h"

namespace ecpipe {

grpc::Status CoordinatorServiceImpl::DryRun(grpc::ServerContext*, const v1::DryRunRequest* request,
                                            v1::DryRunResponse* response) {
  if (!request->has_put_stripes()) {
    return ToGrpc(
        absl::UnimplementedError("this coordinator does not know what the call would do"));
  }
  const absl::StatusOr<std::vector<Stripe>> stripes = StripesToPut(request->put_stripes());
  if (!stripes.ok()) return ToGrpc(stripes.status());
  const absl::StatusOr<PutCounts> counts = catalog_->TryPut(*stripes);
  if (!counts.ok()) return ToGrpc(counts.status());
  response->set_added_stripes(counts->added);
  response->set_replaced_stripes(counts->replaced);
  response->set_unchanged_stripes(counts->unchanged);
  return grpc::Status::OK;
}

}  // namespace ecpipe
