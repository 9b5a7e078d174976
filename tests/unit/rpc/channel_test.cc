// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "base/unique_fd.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"
#include "net/tcp_socket.h"

namespace ecpipe::channel_test {
namespace {

// Whether a client of HTTP/2 has connected and begun to speak.
bool Speaks(int listener) {
  const UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  char first = 0;
  return connection.get() >= 0 && ::recv(connection.get(), &first, 1, 0) == 1 && first == 'P';
}

TEST(Channel, CallsThatFailAtOnceConnectAgainAllTheSame) {
  UniqueFd listener = Listen({"127.0.0.1", 0}).value();
  const int port = BoundAddress(listener.get()).value().port;
  listener.reset();
  const auto channel =
      MakeChannel("127.0.0.1:" + std::to_string(port), RpcSecurity(nullptr), Role::kCoordinator);
  const auto stub = v1::CoordinatorService::NewStub(channel);
  const auto call = [&] {
    AwaitReconnection(channel.get());
    grpc::ClientContext context;
    SetTimeout(&context, std::chrono::seconds(10));
    v1::GetRepairResponse response;
    return stub->GetRepair(&context, v1::GetRepairRequest(), &response).error_code();
  };
  ASSERT_EQ(call(), grpc::StatusCode::UNAVAILABLE) << "nobody listens";
  absl::StatusOr<UniqueFd> again = Listen({"127.0.0.1", port});
  if (!again.ok()) GTEST_SKIP() << "another program has taken the port: " << again.status();
  listener = *std::move(again);
  bool speaks = false;
  for (int i = 0; i < 50 && !speaks; ++i) {
    ASSERT_EQ(call(), grpc::StatusCode::UNAVAILABLE) << "whoever listens does not answer";
    speaks = Speaks(listener.get());
  }
  EXPECT_TRUE(speaks) << "after 50 calls";
}

// A channel that has lost its connection, and the port where nobody listens.
class LostChannel : public ::testing::Test {
 protected:
  LostChannel() {
    UniqueFd listener = Listen({"127.0.0.1", 0}).value();
    port_ = BoundAddress(listener.get()).value().port;
    listener.reset();
    channel_ =
        MakeChannel("127.0.0.1:" + std::to_string(port_), RpcSecurity(nullptr), Role::kCoordinator);
    grpc::ClientContext context;
    SetTimeout(&context, std::chrono::seconds(10));
    v1::GetRepairResponse response;
    const grpc::Status failed = v1::CoordinatorService::NewStub(channel_)->GetRepair(
        &context, v1::GetRepairRequest(), &response);
    EXPECT_EQ(failed.error_code(), grpc::StatusCode::UNAVAILABLE);
  }

  int port_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(LostChannel, AWaitForItEndsWhenTheCallerGivesUp) {
  constexpr Duration kPatience = std::chrono::seconds(60);
  std::stop_source stop;
  const TimePoint begun = Clock::System().Now();
  std::jthread canceller([&] { stop.request_stop(); });
  AwaitReconnection(channel_.get(), kPatience, stop.get_token());
  EXPECT_LT(Clock::System().Now() - begun, kPatience / 4);
}

TEST_F(LostChannel, ComesBackWithoutACallThatWaits) {
  absl::StatusOr<UniqueFd> listener = Listen({"127.0.0.1", port_});
  if (!listener.ok()) GTEST_SKIP() << "another program has taken the port: " << listener.status();
  Reconnector reconnector(channel_);
  reconnector.Begin();
  pollfd polled{listener->get(), POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 10'000), 1) << "nobody has connected";
  const UniqueFd connection(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC));
  polled.fd = connection.get();
  char first = 0;
  ASSERT_EQ(::poll(&polled, 1, 10'000), 1) << "nobody speaks";
  EXPECT_EQ(::recv(connection.get(), &first, 1, 0), 1);
  EXPECT_EQ(first, 'P');
}

}  // namespace
}  // namespace ecpipe::channel_test
