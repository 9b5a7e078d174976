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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/frame.h"
#include "common/mutex.h"
#include "common/stream_socket.h"
#include "common/tls.h"
#include "common/unique_fd.h"
#include "common/wakeup.h"

namespace ecpipe {

// Where an accepted connection is left for the thread that owns the edge.
class ConnectionSlot {
 public:
  explicit ConnectionSlot(std::shared_ptr<Wakeup> owner) : owner_(std::move(owner)) {}

  void Put(StreamSocket socket);
  // The connection, once; an invalid one before it has come and after it was taken.
  StreamSocket Take();

 private:
  const std::shared_ptr<Wakeup> owner_;  // shared: the server may signal while the owner ends
  Mutex mutex_;
  StreamSocket socket_ ABSL_GUARDED_BY(mutex_);
};

// One thread accepts, reads the hello of each connection and matches it with the expected edges. A
// hello that matches nothing yet is kept for a while, because a receiver may dial before its sender
// has been told of the edge: parts are handed out in parallel. For as long it is remembered why a
// sender gave up before its receiver came. A connection whose hello is malformed, or does not match
// within the time, is closed; nothing after the hello is read here. What strangers do costs a
// bounded number of connections and, each event, constant time.
class DataServer {
 public:
  struct Options {
    // From the accepting to the match, TLS included.
    Duration handshake_timeout = std::chrono::seconds(5);
    // Connections that have not been matched, and as many refusals. It bounds what strangers can
    // hold open. The address that has the most of them loses its oldest to a new one, so that a
    // flood from one address pushes out its own.
    size_t max_unmatched = 1024;
    std::shared_ptr<TlsContext> tls;  // null: plain TCP; shared with all that dials
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
  class Loop;

  DataServer(UniqueFd listener, std::string address, const Options& options);
  // Hands the connection to the edge that expects this hello; false if there is none.
  bool HandOver(const Hello& hello, StreamSocket& socket);
  // What to tell who shows this hello, if it is to be refused.
  std::optional<std::string> Farewell(const Hello& hello);
  // Whether refusals are left.
  bool DropOldRefusals(TimePoint now);
  // The edges that are expected, or refused, since the last call.
  std::vector<EdgeId> TakeChanged();
  bool stopping();

  const Options options_;
  const UniqueFd listener_;
  const std::string address_;
  Wakeup wakeup_;
  Mutex mutex_;
  std::map<EdgeId, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  std::list<Refusal> refusals_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::vector<EdgeId> changed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace ecpipe
