// SPDX-License-Identifier: Apache-2.0
#include "net/data_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>
#include <vector>

#include "base/status.h"
#include "net/host_lookups.h"
#include "unit/net/raw_peer.h"

namespace ecpipe::data_server_test {
namespace {

Hello TheHello() {
  Hello hello;
  hello.edge = {7, 1, 0, 0, 0};
  hello.token[0] = 9;
  return hello;
}

// As a successor would; false if that does not come to be.
bool CanListenSoon(const std::string& address) {
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
  while (!Listen(ParseHostPort(address).value()).ok()) {
    if (Clock::System().Now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(DataServer, GivesUpItsPortAndKeepsItsConnections) {
  const auto server = DataServer::Start("127.0.0.1:0", {}).value();
  EXPECT_FALSE(Listen(ParseHostPort(server->address()).value()).ok());
  const UniqueFd stranger = RawConnect(server->address());
  server->StopListening();
  EXPECT_TRUE(CanListenSoon(server->address()));
  EXPECT_TRUE(StillOpen(stranger.get()));
}

TEST(DataServer, WaitsAMomentForTheReceiversThatItExpects) {
  const auto server = DataServer::Start("127.0.0.1:0", {}).value();
  const auto wakeup = std::make_shared<Wakeup>();
  const auto slot = std::make_shared<ConnectionSlot>(wakeup);
  ASSERT_TRUE(server->Expect(TheHello(), slot).ok());
  server->StopListening();
  const UniqueFd receiver = RawConnect(server->address());
  ASSERT_TRUE(RawSend(receiver.get(), HelloBytes(TheHello())));
  ASSERT_TRUE(WaitFor(wakeup->fd(), POLLIN));
  EXPECT_TRUE(slot->Take().valid());
  EXPECT_TRUE(CanListenSoon(server->address()));
  // One that never comes does not keep the port.
  const auto other = DataServer::Start("127.0.0.1:0", {}).value();
  ASSERT_TRUE(other->Expect(TheHello(), slot).ok());
  other->StopListening();
  EXPECT_TRUE(CanListenSoon(other->address()));
}

TEST(DataServer, WithoutADescriptorItDoesNotStartAndSaysSo) {
  // UndefinedBehaviorSanitizer needs a pipe to look at a type that it has not seen before.
  EXPECT_FALSE(ErrnoStatus(EMFILE, "opening").ok());
  const TimePoint deadline = Clock::System().Now() + HostLookups::kPatience;
  EXPECT_TRUE(HostLookups::OfThisProcess().Begin("127.0.0.1")->Await(deadline).ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<UniqueFd> all;
  for (UniqueFd fd(::dup(0)); fd.valid(); fd = UniqueFd(::dup(0))) all.push_back(std::move(fd));
  std::vector<absl::Status> refused;
  for (int free = 0; free < 3; ++free) {  // a listener, an eventfd, an epoll set
    refused.push_back(DataServer::Start("127.0.0.1:0", {}).status());
    all.pop_back();
  }
  all.clear();  // before a thread starts: the sanitizer looks at its type, too
  const absl::Status started = DataServer::Start("127.0.0.1:0", {}).status();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const absl::Status& status : refused) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
  EXPECT_TRUE(started.ok()) << started;
}

}  // namespace
}  // namespace ecpipe::data_server_test
