// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
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

// To be called before a call that may be one of many attempts: gives a connection that was lost up
// to `patience` to come back, and returns at once from any other channel. gRPC looks at its sockets
// from threads that are in a call (and otherwise every five seconds, which is as long as an attempt
// to connect may take), but a call over a connection that was lost fails at once. A process that
// serves no calls itself, and pauses between such calls, would hardly ever connect again.
void AwaitReconnection(grpc::Channel* channel, Duration patience = std::chrono::milliseconds(200));

// Sets the deadline of one call.
void SetTimeout(grpc::ClientContext* context, Duration timeout);

}  // namespace ecpipe
