// SPDX-License-Identifier: Apache-2.0
#include "rpc/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/unique_fd.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "net/tcp_socket.h"

namespace ecpipe {
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

}  // namespace
}  // namespace ecpipe
