// SPDX-License-Identifier: Apache-2.0
#include "net/dialler.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "base/status.h"
#include "unit/net/name_server.h"

namespace ecpipe::dialler_test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr Duration kPatience = seconds(20);

class Dial : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = Listen({"127.0.0.1", 0}).value();
    port_ = BoundAddress(listener_.get())->port;
  }
  absl::StatusOr<UniqueFd> Connected(const std::string& host) {
    ECPIPE_ASSIGN_OR_RETURN(Dialler dialler, Dialler::Begin({host, port_}, &lookups_));
    return Finish(&dialler);
  }
  static absl::StatusOr<UniqueFd> Finish(Dialler* dialler) {
    const TimePoint end = Clock::System().Now() + kPatience;
    while (Clock::System().Now() < end) {
      ECPIPE_ASSIGN_OR_RETURN(UniqueFd fd, dialler->Step());
      if (fd.valid()) return fd;
      pollfd polled = dialler->poll_fd();
      ::poll(&polled, 1, 20'000);
    }
    return absl::DeadlineExceededError("the test's patience");
  }
  static std::string PeerOf(const absl::StatusOr<UniqueFd>& fd) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    EXPECT_EQ(::getpeername(fd->get(), reinterpret_cast<sockaddr*>(&peer), &length), 0);
    return ::inet_ntoa(peer.sin_addr);
  }

  UniqueFd listener_;
  int port_ = 0;
  NameServer server_;
  HostLookups lookups_{server_.resolver()};
};

TEST_F(Dial, ANumericAddressAsksNobody) {
  server_.Hang(true);
  const auto fd = Connected("127.0.0.1");
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(server_.asked().empty());
}

TEST_F(Dial, ANameServerThatDoesNotAnswerHoldsNobodyUp) {
  server_.Hang(true);
  server_.Knows({"127.0.0.1"});
  auto dialler = Dialler::Begin({"name", port_}, &lookups_);
  ASSERT_TRUE(dialler.ok()) << dialler.status();
  for (int i = 0; i < 3; ++i) {
    const auto fd = dialler->Step();
    ASSERT_TRUE(fd.ok()) << fd.status();
    EXPECT_FALSE(fd->valid());
  }
  pollfd polled = dialler->poll_fd();
  EXPECT_EQ(::poll(&polled, 1, 0), 0) << "whoever waits sleeps";
  server_.Hang(false);
  const auto fd = Finish(&*dialler);
  ASSERT_TRUE(fd.ok()) << fd.status();
}

TEST_F(Dial, ALookupHasADeadline) {
  server_.Hang(true);
  const TimePoint begun = Clock::System().Now();
  const absl::Status status = Connected("name").status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("name server does not answer"));
  EXPECT_GE(Clock::System().Now() - begun, Dialler::kLookupPatience);
}

TEST_F(Dial, WhoWaitsForAConnectionIsToldWhatHasNotCome) {
  server_.Hang(true);
  const TimePoint passed = Clock::System().Now() - seconds(1);
  const absl::Status unresolved = Dialler::Connect({"name", port_}, passed, &lookups_).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(unresolved)) << unresolved;
  EXPECT_THAT(std::string(unresolved.message()), HasSubstr("resolve name"));
  server_.Hang(false);
  server_.Knows({"127.0.0.3", "127.0.0.1"});
  const TimePoint deadline = Clock::System().Now() + kPatience;
  const auto fd = Dialler::Connect({"other", port_}, deadline, &lookups_);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(PeerOf(fd), "127.0.0.1");
}

TEST_F(Dial, AnAddressThatRefusesIsFollowedByTheNext) {
  server_.Knows({"127.0.0.3", "127.0.0.2", "127.0.0.1"});
  const auto fd = Connected("name");
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(PeerOf(fd), "127.0.0.1");
  server_.Knows({"127.0.0.3", "127.0.0.2"});
  const absl::Status status = Connected("other").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("refused"));
}

TEST_F(Dial, AnAddressThatIsSilentHasCompany) {
  // A full backlog: what comes after it is dropped.
  const UniqueFd full(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port_));
  ASSERT_EQ(::inet_aton("127.0.0.2", &address.sin_addr), 1);
  ASSERT_EQ(::bind(full.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(full.get(), 0), 0);
  std::vector<UniqueFd> fill;
  for (int i = 0; i < 4; ++i) fill.push_back(StartConnect({"127.0.0.2", port_}).value());
  server_.Knows({"127.0.0.2", "127.0.0.1"});
  const TimePoint begun = Clock::System().Now();
  const auto fd = Connected("name");
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_EQ(PeerOf(fd), "127.0.0.1");
  EXPECT_GE(Clock::System().Now() - begun, Dialler::kTurn);
}

}  // namespace
}  // namespace ecpipe::dialler_test
