// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "coordinator/repairs/helper_gateway.h"
#include "ecpipe/v1/helper.grpc.pb.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// Keeps a channel to every helper, so that handing out a part costs one round trip.
class HelperClient : public HelperGateway {
 public:
  // `tls` null: plain text.
  explicit HelperClient(const std::shared_ptr<TlsContext>& tls)
      : tls_(tls != nullptr), security_(tls) {}

  std::vector<absl::StatusOr<Started>> StartParts(const std::vector<Handout>& handouts,
                                                  Duration timeout) override;
  std::vector<absl::StatusOr<PartProgress>> AskParts(RepairId repair_id, uint32_t attempt,
                                                     const std::vector<HelperAddress>& helpers,
                                                     Duration timeout) override;
  void CancelRepair(RepairId repair_id, uint32_t attempt,
                    const std::vector<HelperAddress>& helpers) override;
  void EndAttempt(RepairId repair_id, uint32_t attempt,
                  const std::vector<HelperAddress>& helpers) override;
  void ForgetConnection(const std::string& control_address) override;

 private:
  // Shared: a call under way keeps its stub when the connection is forgotten.
  using Stub = std::shared_ptr<v1::HelperService::Stub>;
  Stub StubFor(const HelperAddress& helper);
  void EndParts(RepairId repair_id, uint32_t attempt, const std::vector<HelperAddress>& helpers,
                bool keep);

  const bool tls_;
  const RpcSecurity security_;
  Mutex mutex_;
  // By address and node: with TLS a connection is to that node alone. Without, the node is empty.
  std::map<std::pair<std::string, std::string>, Stub> stubs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
