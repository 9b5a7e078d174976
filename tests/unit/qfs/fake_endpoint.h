// SPDX-License-Identifier: Apache-2.0
// An endpoint that does what a script says, on a Unix socket or on TCP with TLS. It lives in the
// test's own process, and has a thread for each connection.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "shim/frame.h"

struct ssl_ctx_st;
struct ssl_st;

namespace ecpipe_qfs {

// What a script has of a connection. All of it ends at once when the endpoint is destroyed.
class FakeConnection {
 public:
  FakeConnection(ecpipe::UniqueFd fd, ssl_ctx_st* tls, int stop_fd);
  ~FakeConnection();

  // The text of REPAIR; empty: the client closed before it was whole.
  std::string ReadRequest();
  // Whether it could be sent.
  bool Send(FrameType type, const std::string& payload);
  bool SendRaw(const std::string& bytes);
  // HEADER, with the number of bytes.
  bool SendHeader(int64_t bytes);
  // DATA frames of at most `frame_bytes`.
  bool SendData(const std::string& bytes, size_t frame_bytes = 32 << 10);
  bool SendEnd(int64_t bytes);
  // Waits until the client closes: true. False: the endpoint is destroyed.
  bool AwaitClose();

 private:
  bool Secure(ssl_ctx_st* tls);
  // Of poll(); false: stopped.
  bool Await(short events);

  ecpipe::UniqueFd fd_;
  const int stop_fd_;
  ssl_st* ssl_ = nullptr;
};

class FakeEndpoint {
 public:
  using Script = std::function<void(FakeConnection& connection)>;
  struct Tls {
    std::string ca, certificate, key;
  };

  explicit FakeEndpoint(Script script) : FakeEndpoint(std::move(script), nullptr) {}
  // On a port of 127.0.0.1 instead, with TLS.
  FakeEndpoint(Script script, const Tls* tls);
  ~FakeEndpoint();

  // As the configuration wants it.
  const std::string& address() const { return address_; }
  // How many connections a script has been done with, or is about to be. Waits for `count`.
  void AwaitConnections(int count);
  int connections();

 private:
  void Listen(bool tcp);
  void Accept();

  const Script script_;
  std::string address_;
  std::string path_;
  ecpipe::UniqueFd listener_;
  ecpipe::UniqueFd stop_fd_;
  ssl_ctx_st* tls_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  int connections_ = 0;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace ecpipe_qfs
