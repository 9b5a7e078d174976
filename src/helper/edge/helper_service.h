// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "ecpipe/v1/helper.grpc.pb.h"
#include "helper/sessions/session_manager.h"
#include "helper/sessions/whole_blocks.h"
#include "helper/store/block_store.h"

namespace ecpipe {

// The control service of a helper: translates, and lets the SessionManager decide.
class HelperServiceImpl final : public v1::HelperService::Service {
 public:
  // `sessions` and `store` outlive the service. `on_start` is called when a part has started, from
  // any thread.
  HelperServiceImpl(std::string node_id, SessionManager* sessions, BlockStore* store,
                    std::function<void()> on_start)
      : node_id_(std::move(node_id)),
        sessions_(sessions),
        store_(store),
        whole_blocks_(store),
        on_start_(std::move(on_start)) {}

  grpc::Status StartPart(grpc::ServerContext* context, const v1::StartPartRequest* request,
                         v1::StartPartResponse* response) override;
  grpc::Status CancelRepair(grpc::ServerContext* context, const v1::CancelRepairRequest* request,
                            v1::CancelRepairResponse* response) override;
  grpc::Status GetPart(grpc::ServerContext* context, const v1::GetPartRequest* request,
                       v1::PartProgress* response) override;
  grpc::Status CheckBlock(grpc::ServerContext* context, const v1::CheckBlockRequest* request,
                          v1::CheckBlockResponse* response) override;
  grpc::Status GetHelperStatus(grpc::ServerContext* context,
                               const v1::GetHelperStatusRequest* request,
                               v1::HelperStatus* response) override;
  grpc::Status FindBlocks(grpc::ServerContext* context, const v1::FindBlocksRequest* request,
                          v1::FindBlocksResponse* response) override;
  grpc::Status ListBlockFiles(grpc::ServerContext* context,
                              const v1::ListBlockFilesRequest* request,
                              v1::ListBlockFilesResponse* response) override;
  grpc::Status RemoveBlockFiles(grpc::ServerContext* context,
                                const v1::RemoveBlockFilesRequest* request,
                                v1::RemoveBlockFilesResponse* response) override;

 private:
  const std::string node_id_;
  SessionManager* const sessions_;
  BlockStore* const store_;
  WholeBlocks whole_blocks_;
  const std::function<void()> on_start_;
};

}  // namespace ecpipe
