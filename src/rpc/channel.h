// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// A channel that comes back quickly when its server restarts: gRPC's own reconnect back-off grows
// to two minutes, far longer than a repair may wait. With TLS the server must have the role
// `server`.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const RpcSecurity& security,
                                           Role server);

// Call this before a call that is repeated until it succeeds: it waits up to `patience` for a lost
// connection to come back, and returns at once if the connection is not lost. Without it a process
// that serves no calls and pauses between its own would hardly ever connect again: gRPC handles its
// sockets only from threads that are in a call (and otherwise every five seconds, which is as long
// as an attempt to connect may take), and a call over a lost connection fails at once.
void AwaitReconnection(grpc::Channel* channel, Duration patience = std::chrono::milliseconds(200));

// Sets the deadline of one call.
void SetTimeout(grpc::ClientContext* context, Duration timeout);

}  // namespace ecpipe
