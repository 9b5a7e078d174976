// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "rpc/rpc_security.h"

namespace ecpipe {

// A channel that comes back quickly when its server restarts: gRPC's own reconnect back-off grows
// to two minutes, far longer than a repair may wait. With TLS the server must have the role
// `server`, and be this node unless that is empty.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const RpcSecurity& security,
                                           Role server, const std::string& node = "");

// Call this before a call that is repeated until it succeeds: it waits up to `patience` for a lost
// connection to come back, and returns at once if the connection is not lost, or soon when `stop`
// is asked to stop. Without it a process that serves no calls and pauses between its own would
// hardly ever connect again: gRPC handles its sockets only from threads that are in a call (and
// otherwise every five seconds, which is as long as an attempt to connect may take), and a call
// over a lost connection fails at once.
void AwaitReconnection(grpc::Channel* channel, Duration patience = std::chrono::milliseconds(200),
                       const std::stop_token& stop = {});

// Has a lost connection come back for callers that do not wait for it: a thread of its own waits,
// as long as that takes. Thread-safe.
class Reconnector {
 public:
  explicit Reconnector(std::shared_ptr<grpc::Channel> channel);
  ~Reconnector();

  // After a call that failed because the connection is lost. Returns at once.
  void Begin();

 private:
  void Run();

  const std::shared_ptr<grpc::Channel> channel_;  // shared with those who call over it
  std::stop_source stop_;
  Mutex mutex_;
  CondVar begun_;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

// Sets the deadline of one call.
void SetTimeout(grpc::ClientContext* context, Duration timeout);

}  // namespace ecpipe
