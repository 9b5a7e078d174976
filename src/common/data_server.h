// SPDX-License-Identifier: Apache-2.0
// The data port of a helper: accepts streams and hands each to the edge that expects it.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
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
// has been told of the edge: parts are handed out in parallel. For as long it is remembered why a
// sender gave up before its receiver came. A connection whose hello is malformed, or does not match
// within the time, is closed; nothing after the hello is read here.
class DataServer {
 public:
  struct Options {
    Duration handshake_timeout = std::chrono::seconds(5);
    // Connections that have not been matched, and as many refusals. It bounds what strangers can
    // hold open; the oldest makes room for a new one.
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
  // expected already. Thread-safe, like Refuse and Forget.
  absl::Status Expect(const Hello& hello, std::shared_ptr<ConnectionSlot> slot);
  // Takes an Expect() back: a connection that shows `hello` within the handshake timeout is sent
  // `farewell` (at most an error frame) and closed. False: it has come before, and is in its slot.
  bool Refuse(const Hello& hello, std::string farewell);
  // No connection is handed over after this. Unknown edges are ignored.
  void Forget(const EdgeId& edge);

 private:
  struct Expected {
    EdgeToken token;
    std::shared_ptr<ConnectionSlot> slot;  // shared: with the edge's owner
  };
  struct Refusal {
    Hello hello;
    std::string farewell;
    TimePoint deadline;
  };
  struct Unmatched;
  class Loop;

  DataServer(UniqueFd listener, std::string address, const Options& options);
  // Hands the connection to the edge that expects this hello; false if there is none.
  bool HandOver(const Hello& hello, UniqueFd& fd);
  // What to tell who shows this hello, if it is to be refused.
  std::optional<std::string> Farewell(const Hello& hello);
  // Whether refusals are left.
  bool DropOldRefusals(TimePoint now);
  bool stopping();

  const Options options_;
  const UniqueFd listener_;
  const std::string address_;
  Wakeup wakeup_;
  Mutex mutex_;
  std::map<EdgeId, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  std::list<Refusal> refusals_ ABSL_GUARDED_BY(mutex_);  // oldest first
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ecpipe
