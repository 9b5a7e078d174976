// SPDX-License-Identifier: Apache-2.0
// A metaserver on loopback whose answers a test gives.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/mutex.h"
#include "base/unique_fd.h"

namespace ecpipe {

class ScriptedMetaServer {
 public:
  // From a request, up to its blank line, the bytes to answer; an empty answer closes the
  // connection.
  using Script = std::function<std::string(const std::string& request)>;

  explicit ScriptedMetaServer(Script script)
      : script_(std::move(script)), listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    ECPIPE_CHECK(::bind(listening_.get(), generic, size) == 0);
    ECPIPE_CHECK(::listen(listening_.get(), 16) == 0);
    ECPIPE_CHECK(::getsockname(listening_.get(), generic, &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  ~ScriptedMetaServer() {
    stopping_ = true;
    thread_.join();
  }

  const std::string& address() const { return address_; }
  int requests() const { return requests_; }

 private:
  bool Readable(int fd) const {
    while (!stopping_) {
      pollfd polled{fd, POLLIN, 0};
      if (::poll(&polled, 1, 20) > 0) return true;
    }
    return false;
  }

  void Run() {
    while (Readable(listening_.get())) {
      const UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Serve(client.get());
    }
  }

  void Serve(int client) {
    std::string got;
    char buffer[4096];
    while (Readable(client)) {
      const ssize_t count = ::read(client, buffer, sizeof buffer);
      if (count <= 0) return;
      got.append(buffer, static_cast<size_t>(count));
      const size_t end = got.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const std::string answer = script_(got.substr(0, end + 2));
      got.erase(0, end + 4);
      ++requests_;
      if (answer.empty()) return;
      if (::send(client, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    }
  }

  const Script script_;
  const UniqueFd listening_;
  std::string address_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> requests_{0};
  std::thread thread_;
};

}  // namespace ecpipe
