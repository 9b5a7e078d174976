// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/port_check.h"

#include <gtest/gtest.h>

#include "net/tcp_socket.h"

namespace ecpipe {
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

}  // namespace
}  // namespace ecpipe
