// SPDX-License-Identifier: Apache-2.0
#include "net/tcp_socket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <set>

namespace ecpipe::tcp_socket_test {
namespace {

constexpr int kPatienceMillis = 10'000;

TEST(HostPort, ParsesAndFormatsBack) {
  const struct {
    const char* text;
    const char* host;
    int port;
  } cases[] = {
      {"127.0.0.1:80", "127.0.0.1", 80},
      {"localhost:0", "localhost", 0},
      {"[::1]:65535", "::1", 65535},
      {"node-7.rack.example:7712", "node-7.rack.example", 7712},
  };
  for (const auto& [text, host, port] : cases) {
    const auto parsed = ParseHostPort(text);
    ASSERT_TRUE(parsed.ok()) << text << parsed.status();
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port, port);
    EXPECT_EQ(FormatHostPort(*parsed), text);
  }
}

TEST(HostPort, RefusesEverythingElse) {
  for (const char* text : {"",         ":",          ":80",        "host",       "host:",
                           "host:x",   "host:80x",   "host:-1",    "host:65536", "host:99999999999",
                           "host: 80", "::1:80",     "[::1]",      "[::1:80",    "[]:80",
                           "a:b:80",   "host:-0",    "host:+1",    "[host]:80",  "[host:80",
                           "host]:80", "[[::1]]:80", "[[host]:80", "ho st:80",   "host\n:80"}) {
    const auto parsed = ParseHostPort(text);
    EXPECT_TRUE(absl::IsInvalidArgument(parsed.status())) << "'" << text << "'";
  }
  // The resolver would see another host, which ends at the NUL.
  EXPECT_FALSE(ParseHostPort(std::string("127.0.0.1\0.example:80", 21)).ok());
}

TEST(Loopback, IsWhatNobodyOutsideCanReach) {
  for (const char* host : {"127.0.0.1", "127.8.9.10", "::1", "localhost"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "128.0.0.1", "126.255.255.255", "example",
                           "localhost.example", "::2", "127.0.0.1.example", ""}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(TcpSocket, ListensOnAllAddressesOfANameWithOnePort) {
  const auto listeners = ListenOnAll({"localhost", 0});
  ASSERT_TRUE(listeners.ok()) << listeners.status();
  std::set<std::string> hosts;
  std::set<int> ports;
  for (const UniqueFd& listener : *listeners) {
    const auto bound = BoundAddress(listener.get());
    ASSERT_TRUE(bound.ok()) << bound.status();
    EXPECT_TRUE(hosts.insert(bound->host).second) << bound->host << " twice";
    EXPECT_TRUE(IsLoopback(bound->host)) << bound->host;
    ports.insert(bound->port);
  }
  EXPECT_TRUE(hosts.contains("127.0.0.1") || hosts.contains("::1"));
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(ListenOnAll({"localhost", *ports.begin()}).status()));
  EXPECT_FALSE(ListenOnAll({"192.0.2.1", 0}).ok()) << "an address of another host";
}

TEST(TcpSocket, ListensOnAFreePortAndConnects) {
  const auto listener = Listen({"127.0.0.1", 0});
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto bound = BoundAddress(listener->get());
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ(bound->host, "127.0.0.1");
  EXPECT_GT(bound->port, 0);
  const auto fd = StartConnect(*bound);
  ASSERT_TRUE(fd.ok()) << fd.status();
  pollfd polled{fd->get(), POLLOUT, 0};
  ASSERT_EQ(::poll(&polled, 1, kPatienceMillis), 1);
  EXPECT_TRUE(ConnectResult(fd->get(), "peer").ok());
}

TEST(TcpSocket, APortThatIsTakenIsUnavailable) {
  const auto first = Listen({"127.0.0.1", 0});
  ASSERT_TRUE(first.ok()) << first.status();
  const HostPort bound = BoundAddress(first->get()).value();
  const absl::Status second = Listen(bound).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_NE(second.message().find(FormatHostPort(bound)), std::string::npos) << second;
}

TEST(TcpSocket, NobodyListensIsUnavailableWithTheAddress) {
  HostPort closed;
  {
    const auto listener = Listen({"127.0.0.1", 0});
    closed = BoundAddress(listener.value().get()).value();
  }
  const auto fd = StartConnect(closed);
  absl::Status status = fd.status();
  if (fd.ok()) {
    pollfd polled{fd->get(), POLLOUT, 0};
    ASSERT_EQ(::poll(&polled, 1, kPatienceMillis), 1);
    status = ConnectResult(fd->get(), FormatHostPort(closed));
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find(FormatHostPort(closed)), std::string::npos) << status;
}

TEST(TcpSocket, AnAddressThatIsNoneIsNamed) {
  const absl::Status status = StartConnect({"256.1.1.1.invalid", 1}).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_NE(status.message().find("256.1.1.1.invalid"), std::string::npos) << status;
}

}  // namespace
}  // namespace ecpipe::tcp_socket_test
