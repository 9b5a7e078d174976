// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <chrono>

namespace ecpipe {
namespace {

// A wait for a connection takes as long: gRPC's own cannot be ended from outside.
constexpr Duration kTurn = std::chrono::milliseconds(50);

std::chrono::system_clock::time_point AsDeadline(Duration timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::microseconds>(timeout);
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const RpcSecurity& security,
                                           Role server, const std::string& node) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // Despite its name this is how long one attempt to connect may take. A busy host needs more than
  // an idle one; calls have deadlines of their own.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Proxies are for the web; a control plane inside a cluster must not go through one by accident.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Messages are small: measuring the link's bandwidth with pings would cost more than it wins.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // A table of links or a page of stripes may have more than the usual 4 MiB.
  arguments.SetMaxReceiveMessageSize(64 << 20);
  return grpc::CreateCustomChannel(address, security.ForChannel(server, node), arguments);
}

void AwaitReconnection(grpc::Channel* channel, Duration patience, const std::stop_token& stop) {
  if (channel->GetState(/*try_to_connect=*/false) != GRPC_CHANNEL_TRANSIENT_FAILURE) return;
  const TimePoint end = Clock::System().Now() + patience;
  while (!stop.stop_requested()) {
    const Duration left = end - Clock::System().Now();
    if (left <= Duration(0) || channel->WaitForConnected(AsDeadline(std::min(left, kTurn)))) return;
  }
}

Reconnector::Reconnector(std::shared_ptr<grpc::Channel> channel)
    : channel_(std::move(channel)), thread_([this] { Run(); }) {}

Reconnector::~Reconnector() {
  {
    MutexLock lock(&mutex_);
    stop_.request_stop();
  }
  begun_.NotifyAll();
  thread_.join();
}

void Reconnector::Begin() {
  {
    MutexLock lock(&mutex_);
    wanted_ = true;
  }
  begun_.NotifyAll();
}

void Reconnector::Run() {
  while (true) {
    {
      MutexLock lock(&mutex_);
      while (!wanted_ && !stop_.stop_requested()) begun_.Wait(lock);
      if (stop_.stop_requested()) return;
      wanted_ = false;
    }
    while (!stop_.stop_requested() && !channel_->WaitForConnected(AsDeadline(kTurn))) {
    }
  }
}

void SetTimeout(grpc::ClientContext* context, Duration timeout) {
  context->set_deadline(AsDeadline(timeout));
}

}  // namespace ecpipe
