// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string>

#include "common/clock.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// A channel that comes back quickly when its server restarts: gRPC's own reconnect back-off grows
// to two minutes, far longer than a repair may wait. With TLS the server must have the role
// `server`.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const RpcSecurity& security,
                                           Role server);

// Sets the deadline of one call.
void SetTimeout(grpc::ClientContext* context, Duration timeout);

}  // namespace ecpipe
