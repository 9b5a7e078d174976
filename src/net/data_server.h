// SPDX-License-Identifier: Apache-2.0
// The data port of a helper: accepts streams and hands each to the edge that expects it.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "net/frame.h"
#include "net/stream_socket.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Where an accepted connection is left for the thread that owns the edge.
class ConnectionSlot {
 public:
  explicit ConnectionSlot(std::shared_ptr<Wakeup> owner) : owner_(std::move(owner)) {}

  void Put(StreamSocket socket);
  // Takes the connection out of the slot. Returns an invalid one before it has come, and after it
  // was taken.
  StreamSocket Take();

 private:
  const std::shared_ptr<Wakeup> owner_;  // shared: the server may signal while the owner ends
  Mutex mutex_;
  StreamSocket socket_ ABSL_GUARDED_BY(mutex_);
};

// One thread accepts connections, reads the hello of each and matches it with the expected edges. A
// hello that matches nothing yet is kept for the handshake timeout, because a receiver may dial
// before its sender knows the edge: parts are handed out in parallel. If a sender gave up before
// its receiver came, the reason is kept for the same time. A connection is closed if its hello is
// malformed or finds no match in time; nothing after the hello is read here. Strangers can hold a
// bounded number of connections, and each of their events takes constant time.
class DataServer {
 public:
  struct Options {
    // Time from accepting a connection to its match, TLS included.
    Duration handshake_timeout = std::chrono::seconds(5);
    // Most connections without a match, and most refusals that are kept. It bounds what strangers
    // can hold open. Beyond it the address with the most such connections loses its oldest, so a
    // flood from one address pushes out only its own.
    size_t max_unmatched = 1024;
    std::shared_ptr<TlsContext> tls;  // null: plain TCP; shared with the transport that dials
  };

  // How long StopListening() waits for receivers, which dial within milliseconds of their start.
  static constexpr Duration kLastConnections = std::chrono::seconds(1);

  // `address` is "host:port"; port 0 picks a free one. RESOURCE_EXHAUSTED: the process has no
  // descriptor left.
  static absl::StatusOr<std::unique_ptr<DataServer>> Start(const std::string& address,
                                                           const Options& options);
  // Closes the port and all connections that were not handed over.
  ~DataServer();

  // The numeric "host:port" that the server listens on.
  const std::string& address() const { return address_; }

  // Puts the next connection that shows `hello` into `slot`, once; with TLS only one whose
  // certificate names this node, unless that is empty. ALREADY_EXISTS if the edge is
  // already expected. Thread-safe, like Refuse and Forget.
  absl::Status Expect(const Hello& hello, std::shared_ptr<ConnectionSlot> slot,
                      const std::string& certificate = "");
  // Takes an Expect() back: a connection that shows `hello` within the handshake timeout gets
  // `farewell` (at most an error frame) and is closed. Returns false if the connection came before
  // and is in its slot.
  bool Refuse(const Hello& hello, std::string farewell);
  // No connection is handed over after this. Unknown edges are ignored.
  void Forget(const EdgeId& edge);

  // Gives up the port, so that another process may listen on it: at once, or if edges are expected
  // when the last of them has come, but after kLastConnections at the latest. Connections stay.
  void StopListening();

 private:
  struct Expected {
    EdgeToken token;
    std::string certificate;
    std::shared_ptr<ConnectionSlot> slot;  // shared: with the edge's owner
  };
  struct Refusal {
    Hello hello;
    std::string farewell;
    TimePoint deadline;
  };
  class Loop;

  DataServer(UniqueFd listener, UniqueFd epoll, Wakeup wakeup, std::string address,
             const Options& options);
  // Hands the connection to the edge that expects this hello; false if there is none.
  bool HandOver(const Hello& hello, StreamSocket& socket);
  // What to send to a connection that shows this hello, if it is to be refused.
  std::optional<std::string> Farewell(const Hello& hello);
  // Returns whether refusals are left.
  bool DropOldRefusals(TimePoint now);
  // The edges that are expected, or refused, since the last call.
  std::vector<EdgeId> TakeChanged();
  bool stopping();
  // Until when connections are accepted; nullopt: no end is set.
  std::optional<TimePoint> LastAccept();

  const Options options_;
  UniqueFd listener_;  // the thread's
  const UniqueFd epoll_;
  const std::string address_;
  Wakeup wakeup_;
  Mutex mutex_;
  std::map<EdgeId, Expected> expected_ ABSL_GUARDED_BY(mutex_);
  std::list<Refusal> refusals_ ABSL_GUARDED_BY(mutex_);  // oldest first
  std::vector<EdgeId> changed_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<TimePoint> last_accept_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;
};

}  // namespace ecpipe
