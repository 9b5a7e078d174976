// SPDX-License-Identifier: Apache-2.0
#include "rpc/config_service.h"

namespace ecpipe {

grpc::Status ConfigService::GetConfig(grpc::ServerContext*, const v1::GetConfigRequest*,
                                      v1::GetConfigResponse* response) {
  const ConfigValues values = running_->values();
  response->mutable_values()->insert(values.begin(), values.end());
  const auto& reloadable = running_->reloadable();
  response->mutable_reloadable()->Assign(reloadable.begin(), reloadable.end());
  return grpc::Status::OK;
}

}  // namespace ecpipe
