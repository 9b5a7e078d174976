// SPDX-License-Identifier: Apache-2.0
#include "rpc/examine/port_check.h"

#include <gtest/gtest.h>

#include "net/tcp_socket.h"
#include "unit/net/name_server.h"

namespace ecpipe::port_check_test {
namespace {

TEST(PortCheck, TellsWhoListens) {
  const UniqueFd listener = Listen({"127.0.0.1", 0}).value();
  const std::string open = FormatHostPort(BoundAddress(listener.get()).value());
  UniqueFd was = Listen({"127.0.0.1", 0}).value();
  const std::string closed = FormatHostPort(BoundAddress(was.get()).value());
  was.reset();
  const auto answers = CheckPorts({open, closed, "no-such-host.invalid:1", "nonsense", open},
                                  std::chrono::seconds(20));
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_TRUE(answers[0].ok()) << answers[0];
  EXPECT_TRUE(absl::IsUnavailable(answers[1])) << answers[1];
  EXPECT_TRUE(absl::IsUnavailable(answers[2])) << answers[2];
  EXPECT_TRUE(absl::IsInvalidArgument(answers[3])) << answers[3];
  EXPECT_TRUE(answers[4].ok()) << answers[4];
}

TEST(PortCheck, EachAddressOfANameIsTried) {
  NameServer server;
  server.Knows({"127.0.0.2", "127.0.0.1"});
  HostLookups lookups(server.resolver());
  const UniqueFd listener = Listen({"127.0.0.1", 0}).value();
  const std::string port = std::to_string(BoundAddress(listener.get())->port);
  const auto answers = CheckPorts({"name:" + port}, std::chrono::seconds(60), &lookups);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_TRUE(answers[0].ok()) << answers[0];
}

TEST(PortCheck, ANameServerThatHangsHoldsUpNobody) {
  NameServer server;
  server.Hang(true);
  HostLookups lookups(server.resolver());
  const auto answers = CheckPorts({"one:1", "two:1"}, std::chrono::milliseconds(1), &lookups);
  ASSERT_EQ(answers.size(), 2u);
  for (const absl::Status& answer : answers) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(answer)) << answer;
    EXPECT_NE(answer.message().find("name server"), std::string::npos) << answer;
  }
}

}  // namespace
}  // namespace ecpipe::port_check_test
