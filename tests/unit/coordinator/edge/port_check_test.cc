// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/port_check.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/mutex.h"
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

// The name server answers nobody, until the test is over.
TEST(PortCheck, ANameServerThatHangsHoldsUpNobody) {
  struct Held {
    Mutex mutex;
    CondVar changed;
    bool over = false;
  };
  const auto held = std::make_shared<Held>();  // shared with threads that outlive the call
  const HostResolver resolve = [held](const std::string& host) -> absl::StatusOr<std::string> {
    if (host == "quick") return std::string("127.0.0.1");
    MutexLock lock(&held->mutex);
    while (!held->over) held->changed.Wait(lock);
    return absl::UnavailableError("too late");
  };
  const UniqueFd listener = Listen({"127.0.0.1", 0}).value();
  const HostPort open = BoundAddress(listener.get()).value();
  std::vector<std::string> addresses = {"quick:" + std::to_string(open.port), FormatHostPort(open)};
  for (int i = 0; i < 5; ++i) addresses.push_back("hangs-" + std::to_string(i) + ":1");
  constexpr Duration kTimeout = std::chrono::milliseconds(500);
  const TimePoint begun = Clock::System().Now();
  const auto answers = CheckPorts(addresses, kTimeout, resolve);
  EXPECT_LT(Clock::System().Now() - begun, 10 * kTimeout);
  ASSERT_EQ(answers.size(), 7u);
  EXPECT_TRUE(answers[0].ok()) << answers[0];
  EXPECT_TRUE(answers[1].ok()) << answers[1];
  for (size_t i = 2; i < answers.size(); ++i) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(answers[i])) << answers[i];
  }
  MutexLock lock(&held->mutex);
  held->over = true;
  held->changed.NotifyAll();
}

}  // namespace
}  // namespace ecpipe
