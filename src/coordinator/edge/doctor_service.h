// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "coordinator/cluster/node_registry.h"
#include "ecpipe/v1/doctor.grpc.pb.h"
#include "net/tls/tls.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// The coordinator's part of `ecpipe doctor`: it examines itself, dials each helper, and has each
// helper examine itself and dial the others. Some dozens at the same time, and a helper that hangs
// costs its own deadline.
class CoordinatorDoctor final : public v1::DoctorService::Service {
 public:
  // `nodes` outlives the service; `tls` null: plain text, shared with both planes.
  CoordinatorDoctor(NodeRegistry* nodes, const std::shared_ptr<TlsContext>& tls,
                    std::string data_directory)
      : nodes_(nodes), tls_(tls), security_(tls), data_directory_(std::move(data_directory)) {}

  grpc::Status ExamineCluster(grpc::ServerContext* context,
                              const v1::ExamineClusterRequest* request,
                              v1::ExamineClusterResponse* response) override;

 private:
  void ExamineNodes(grpc::ServerContext* context, v1::ExamineClusterResponse* response);
  // An answer of more than `most_bytes` is dropped.
  void ExamineOne(const NodeRecord& record, const v1::ExamineNodeRequest& request,
                  size_t most_bytes, v1::ExamineClusterResponse::Node* node);

  NodeRegistry* const nodes_;
  const std::shared_ptr<TlsContext> tls_;
  const RpcSecurity security_;
  const std::string data_directory_;
  std::atomic<bool> busy_{false};
};

}  // namespace ecpipe
