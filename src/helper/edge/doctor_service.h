// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "ecpipe/v1/doctor.grpc.pb.h"
#include "helper/edge/helper_config.h"
#include "helper/store/block_store.h"
#include "helper/store/root_calls.h"
#include "net/tls/tls.h"

namespace ecpipe {

// A helper examines itself for `ecpipe doctor`. It dials only what its coordinator names.
class HelperDoctor final : public v1::DoctorService::Service {
 public:
  // `store` outlives it. `tls` null: plain text; shared with both planes.
  HelperDoctor(const HelperConfig& config, BlockStore* store, std::shared_ptr<TlsContext> tls);

  grpc::Status ExamineNode(grpc::ServerContext* context, const v1::ExamineNodeRequest* request,
                           v1::NodeExamination* response) override;

 private:
  struct Root {
    std::string path;
    std::unique_ptr<RootCalls> calls;  // kept: a root that hangs holds only so many threads
  };
  void ExamineRoots(v1::NodeExamination* response);
  void LookAtFormats(v1::NodeExamination* response);

  const std::string coordinator_;
  const StoreKind kind_;
  BlockStore* const store_;
  const std::shared_ptr<TlsContext> tls_;
  std::vector<Root> roots_;
  std::atomic<bool> busy_{false};
};

}  // namespace ecpipe
