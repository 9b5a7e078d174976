// SPDX-License-Identifier: Apache-2.0
// A client of a requestor endpoint, for tests: it speaks the protocol by itself, byte for byte.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>

#include "base/bytes/crc32c.h"
#include "base/unique_fd.h"
#include "net/tcp_socket.h"

namespace ecpipe {

class EndpointClient {
 public:
  struct Frame {
    int type = 0;  // 0: the connection has ended
    std::string payload;
    int target = 0;
  };

  // "unix:/path" or "tcp:host:port".
  explicit EndpointClient(const std::string& address) {
    if (address.rfind("tcp:", 0) == 0) {
      fd_ = StartConnect(ParseHostPort(address.substr(4)).value()).value();
      return;
    }
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, address.data() + 5, address.size() - 5);
    fd_ = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }

  bool connected() const { return connected_; }
  int fd() const { return fd_.get(); }

  static std::string FrameOf(int type, const std::string& payload, int target = 0) {
    std::string frame = "ECPR";
    frame += '\1';
    frame += static_cast<char>(type);
    frame += static_cast<char>(target);
    frame += '\0';
    Append(static_cast<uint32_t>(payload.size()), &frame);
    Append(Crc32c({reinterpret_cast<const uint8_t*>(payload.data()), payload.size()}), &frame);
    return frame + payload;
  }

  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      pollfd polled{fd_.get(), POLLOUT, 0};
      if (::poll(&polled, 1, kPatienceMillis) != 1) return false;
      const ssize_t count =
          ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<size_t>(count);
    }
    return true;
  }

  Frame Receive() {
    const std::string header = Read(16);
    if (header.size() < 16) return {};
    Frame frame{static_cast<uint8_t>(header[5]), Read(Number(header, 8)),
                static_cast<uint8_t>(header[6])};
    const uint32_t crc =
        Crc32c({reinterpret_cast<const uint8_t*>(frame.payload.data()), frame.payload.size()});
    if (header.substr(0, 5) != std::string("ECPR\1") || crc != Number(header, 12)) {
      return {-1, "", 0};
    }
    return frame;
  }

 private:
  static constexpr int kPatienceMillis = 20'000;

  static void Append(uint32_t value, std::string* text) {
    for (int shift = 0; shift < 32; shift += 8) *text += static_cast<char>(value >> shift);
  }
  static uint32_t Number(const std::string& bytes, size_t at) {
    uint32_t value = 0;
    for (size_t i = 4; i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[at + i - 1]);
    return value;
  }

  // Fewer bytes: the connection has ended.
  std::string Read(size_t bytes) {
    std::string text(bytes, '\0');
    size_t got = 0;
    while (got < bytes) {
      pollfd polled{fd_.get(), POLLIN, 0};
      if (::poll(&polled, 1, kPatienceMillis) != 1) break;
      const ssize_t count = ::recv(fd_.get(), text.data() + got, bytes - got, 0);
      if (count <= 0) break;
      got += static_cast<size_t>(count);
    }
    text.resize(got);
    return text;
  }

  UniqueFd fd_;
  bool connected_ = true;
};

}  // namespace ecpipe
