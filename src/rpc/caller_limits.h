// SPDX-License-Identifier: Apache-2.0
// What callers may hold of a gRPC server: connections, which gRPC does not limit, and calls, each
// of which takes a thread until it ends.
#pragma once

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "net/origin_shares.h"

namespace ecpipe {

// Thread-safe. Beyond a limit the address with the most loses its oldest.
class CallerLimits {
 public:
  struct Options {
    // From the accepting of a connection to its first call, TLS included.
    Duration first_call = std::chrono::seconds(10);
    // Connections with a call, of which there is one a peer and process, and without one. They are
    // fewer where the process may have few descriptors (Room()).
    size_t max_calling = 16384;
    size_t max_waiting = 1024;
    // Calls at once that return and that others than daemons may make (IsOfDaemons), by callers
    // with a certificate: three quarters of the threads. The rest is for what the cluster lives by,
    // heartbeats above all.
    size_t max_calls_of_others = 768;
    // Streaming calls at once. A report of blocks takes seconds; the other threads are for calls
    // that return.
    size_t max_streams = 256;
    size_t max_streams_of_a_connection = 8;
    Duration stream = std::chrono::seconds(120);  // as long as a helper reports blocks
    // Streams that wait for news of health (grpc.health.v1.Health/Watch), apart from the others.
    // They take no thread, but memory; whoever wants to go on watches again.
    size_t max_watches = 256;
    Duration watch = std::chrono::hours(1);
    // Server reflection, which lists services to operators' tools.
    size_t max_reflections = 8;
    Duration reflection = std::chrono::seconds(5);
    // Of the coordinator's data, which makes one at a time: 1 TB at 300 MB/s.
    Duration backup = std::chrono::hours(1);
  };
  // How many connections of each kind fit, by the process's limit of descriptors, so that the data
  // plane and files have the larger part of them.
  struct Room {
    size_t calling;
    size_t waiting;
  };
  static Room RoomFor(const Options& options, uint64_t max_descriptors);

  explicit CallerLimits(const Options& options) : options_(options) {}

  // A connection was accepted. `watch` is a duplicate of its descriptor: when gRPC or the peer has
  // closed it, it hangs up, and Forget(id) is due. Shuts others down where there are too many.
  uint64_t Add(UniqueFd watch, const sockaddr_storage& from);
  void Forget(uint64_t id);
  // Shuts down connections that are late with their first call, cancels streams that take too long.
  // Returns whether any may become late.
  bool EndLate(TimePoint now);

  // Whether a call that has come may begin. RESOURCE_EXHAUSTED: others than daemons have too many
  // under way already, or too many watch. `caller` is for the log.
  absl::Status Admit(const std::string& method, const std::string& caller);

  // What the server has to be built with.
  static std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Watch(
      std::shared_ptr<CallerLimits> limits);
  // Called when a stream has begun, by its thread.
  void set_on_stream(std::function<void()> on_stream) { on_stream_ = std::move(on_stream); }

 private:
  class Interceptor;
  class Factory;
  struct Connection {
    UniqueFd watch;
    std::string peer;
    std::string origin;
    TimePoint deadline;  // of its first call
  };
  enum class StreamKind { kReport, kReflection, kBackup, kWatch };
  struct Stream {
    grpc::ServerContextBase* context;
    TimePoint deadline;
    StreamKind kind;
    bool cancelling = false;  // the context is in use, so the stream's thread waits
  };

  void NoteCall(const std::string& peer);
  Duration DeadlineOf(StreamKind kind) const;
  // Whether there are so many that none of the kind may be added, by this peer or at all.
  bool Full(StreamKind kind, const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginCallOfOthers();
  void EndCallOfOthers();
  // Counts a stream; 0: there are too many.
  uint64_t BeginStream(grpc::ServerContextBase* context, StreamKind kind);
  void EndStream(uint64_t id);
  // For the log, once no lock is held.
  struct Note {
    const char* event = nullptr;  // null: nothing to say
    std::string origin;
    uint64_t count = 0;
  };
  static void Say(const Note& note);
  void ShutDown(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts what was ended, and fills in the note if it is time for one.
  void NoteEnded(const char* event, const std::string& origin, Note* note)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  std::function<void()> on_stream_ = [] {};
  Mutex mutex_;
  CondVar cancelled_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> by_peer_ ABSL_GUARDED_BY(mutex_);
  OriginShares waiting_ ABSL_GUARDED_BY(mutex_);
  OriginShares calling_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Stream> streams_ ABSL_GUARDED_BY(mutex_);
  OriginShares streams_by_peer_ ABSL_GUARDED_BY(mutex_);
  std::map<StreamKind, size_t> streams_by_kind_ ABSL_GUARDED_BY(mutex_);
  size_t calls_of_others_ ABSL_GUARDED_BY(mutex_) = 0;  // that have begun
  // When calls were admitted that have not begun. They may never: gRPC drops some without a word.
  std::deque<TimePoint> admitted_ ABSL_GUARDED_BY(mutex_);
  uint64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last note
  TimePoint next_note_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace ecpipe
