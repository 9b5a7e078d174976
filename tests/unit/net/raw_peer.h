// SPDX-License-Identifier: Apache-2.0
// Bare sockets that play one end of a stream, to send what no real peer would. Every wait is
// bounded; what does not come in time fails the test through its return value.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>
#include <string>
#include <vector>

#include "base/bytes/crc32c.h"
#include "base/check.h"
#include "base/unique_fd.h"
#include "net/frame.h"
#include "net/tcp_socket.h"

namespace ecpipe {

// Far beyond what a loopback needs, also under a sanitizer on a busy host.
inline constexpr int kPatienceMillis = 20'000;

inline bool WaitFor(int fd, short events) {
  pollfd polled{fd, events, 0};
  return ::poll(&polled, 1, kPatienceMillis) == 1;
}

inline UniqueFd RawConnect(const std::string& address) {
  UniqueFd fd = StartConnect(ParseHostPort(address).value()).value();
  ECPIPE_CHECK(WaitFor(fd.get(), POLLOUT));
  ECPIPE_CHECK(ConnectResult(fd.get(), address).ok());
  return fd;
}

// The same from another of this host's addresses.
inline UniqueFd RawConnect(const std::string& address, const std::string& from) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  ECPIPE_CHECK(::inet_pton(AF_INET, from.c_str(), &own.sin_addr) == 1);
  ECPIPE_CHECK(::bind(fd.get(), reinterpret_cast<sockaddr*>(&own), sizeof own) == 0);
  const HostPort peer = ParseHostPort(address).value();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(peer.port));
  ECPIPE_CHECK(::inet_pton(AF_INET, peer.host.c_str(), &to.sin_addr) == 1);
  ECPIPE_CHECK(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
  ECPIPE_CHECK(::fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0);
  return fd;
}

inline bool RawSend(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    if (!WaitFor(fd, POLLOUT)) return false;
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
  return true;
}

// Exactly `count` bytes, or fewer when the peer closes or is silent.
inline std::vector<uint8_t> RawReceive(int fd, size_t count) {
  std::vector<uint8_t> bytes(count);
  size_t received = 0;
  while (received < count && WaitFor(fd, POLLIN)) {
    const ssize_t got = ::recv(fd, bytes.data() + received, count - received, 0);
    if (got <= 0) break;
    received += static_cast<size_t>(got);
  }
  bytes.resize(received);
  return bytes;
}

// Whether the peer closes, orderly or with a reset, without sending a byte before.
inline bool ClosedByPeer(int fd) {
  if (!WaitFor(fd, POLLIN)) return false;
  uint8_t byte = 0;
  const ssize_t got = ::recv(fd, &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

inline bool StillOpen(int fd) {
  uint8_t byte = 0;
  return ::recv(fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

inline std::array<uint8_t, kHelloBytes> HelloBytes(const Hello& hello) {
  std::array<uint8_t, kHelloBytes> bytes{};
  EncodeHello(hello, bytes);
  return bytes;
}

// A frame as a sender would write it, with the payload's checksum filled in.
inline std::vector<uint8_t> FrameBytes(FrameHeader header, std::span<const uint8_t> payload) {
  header.payload_crc32c = Crc32c(payload);
  std::array<uint8_t, kFrameHeaderBytes> encoded{};
  EncodeFrameHeader(header, encoded);
  std::vector<uint8_t> bytes(encoded.begin(), encoded.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

// Listens like a data port and plays the sender to one receiver.
class RawSender {
 public:
  RawSender() : listener_(Listen({"127.0.0.1", 0}).value()) {}

  std::string address() const { return FormatHostPort(BoundAddress(listener_.get()).value()); }

  // Takes the connection and reads its hello, which is what is returned.
  absl::StatusOr<Hello> Accept() {
    if (!WaitFor(listener_.get(), POLLIN)) return absl::DeadlineExceededError("nobody dialled");
    fd_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    const std::vector<uint8_t> bytes = RawReceive(fd_.get(), kHelloBytes);
    if (bytes.size() != kHelloBytes) return absl::UnavailableError("no whole hello came");
    return DecodeHello(std::span<const uint8_t, kHelloBytes>(bytes.data(), kHelloBytes));
  }

  bool Send(std::span<const uint8_t> bytes) { return RawSend(fd_.get(), bytes); }
  int fd() const { return fd_.get(); }
  void Close() { fd_.reset(); }

 private:
  const UniqueFd listener_;
  UniqueFd fd_;
};

}  // namespace ecpipe
