// SPDX-License-Identifier: Apache-2.0
// The data port of a helper: accepts streams and hands each to the edge that expects it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/frame.h"
#include "common/mutex.h"
#include "common/unique_fd.h"
#include "common/wakeup.h"

namespace ecpipe {

// Where an accepted connection is left for the thread that owns the edge.
class ConnectionSlot {
 public:
  explicit ConnectionSlot(std::shared_ptr<Wakeup> owner) : owner_(std::move(owner)) {}

  void Put(UniqueFd fd);
  // The connection, once; an invalid fd before it has come and after it was taken.
  UniqueFd Take();

 private:
  const std::shared_ptr<Wakeup> owner_;  // shared: the server may signal while the owner ends
  Mutex mutex_;
  UniqueFd fd_ ABSL_GUARDED_BY(mutex_);
};

// One thread accepts, reads the hello of each connection and matches it with the expected edges. A
// hello that matches nothing yet is kept for a while, because a receiver may dial before its sender
// has been told of the edge: parts are handed out in parallel. A connection whose hello is
// malformed, or does not match within the time, is closed; nothing after the hello is read here.
class DataServer {
 public:
  struct Options {
    Duration handshake_timeout = std::chrono::seconds(5);
    // Connections that have not been matched. It bounds what strangers can hold open; the oldest
    // makes room for a new one.
    size_t max_unmatched = 1024;
  };

  // `address` is "host:port"; port 0 picks a free one.
  static absl::StatusOr<std::unique_ptr<DataServer>> Start(const std::string& address,
                                                           const Options& options);
  // Closes the port and all connections that were not handed over.
  ~DataServer();

  // Numeric "host:port" that it listens on.
  const std::string& address() const { return address_; }

  // Hands the next connection that shows `hello` to `slot`, once. ALREADY_EXISTS when the edge is
  // expected already. Thread-safe, like Forget.
  absl::Status Expect(const Hello& hello, std::shared_ptr<ConnectionSlot> slot);
  // No connection is handed over after this. Unknown edges are ignored.
  void Forget(const EdgeId& edge);

 private:
  struct Expected {
    EdgeToken token;
    std::shared_ptr<ConnectionSlot> slot;  // shared: with the edge's owner
  };
  struct Unmatched;
  class Loop;

  DataServer(UniqueFd listener, std::string address, const Options& options);
  // The slot that waits for this hello, which is then no longer expected; nothing if there is none.
  std::shared_ptr<ConnectionSlot> Claim(const Hello& hello);
  bool stopping();

  const Options options_;
  const UniqueFd listener_;
  const std::string address_;
  Wakeup wakeup_;
  Mutex mutex_;
  std::map<EdgeId, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ecpipe
