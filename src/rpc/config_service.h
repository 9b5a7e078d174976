// SPDX-License-Identifier: Apache-2.0
// The service by which a daemon shows its configuration.
#pragma once

#include "base/process/running_config.h"
#include "ecpipe/v1/daemon.grpc.pb.h"

namespace ecpipe {

class ConfigService : public v1::DaemonService::Service {
 public:
  // `running` outlives the service.
  explicit ConfigService(const RunningConfig* running) : running_(running) {}

  grpc::Status GetConfig(grpc::ServerContext*, const v1::GetConfigRequest*,
                         v1::GetConfigResponse* response) override;

 private:
  const RunningConfig* const running_;
};

}  // namespace ecpipe
