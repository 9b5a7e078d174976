// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/stream_socket.h"
#include "requestor/endpoint_source.h"

namespace ecpipe {

// One connection of an endpoint, which is one repair. Run() is its thread; what the peer does while
// that waits for bytes somebody else watches, and says so by PeerHasGone() and Expire().
class EndpointSession {
 public:
  struct Options {
    Duration request_timeout = std::chrono::seconds(5);  // until the request is whole
    Duration write_timeout = std::chrono::seconds(60);   // in which the client reads nothing
  };
  struct Outcome {
    bool repair = false;  // a request has come
    absl::Status status;
    uint64_t bytes = 0;  // that were sent of the block
  };

  // `on_change` is called from Run() when there is something else to watch. All outlive the
  // session.
  EndpointSession(StreamSocket socket, const Options& options, const RepairSourceFactory* factory,
                  std::function<void()> on_change);

  // Serves the client to the end. Once.
  Outcome Run();

  // What is to be watched, from any thread: the socket, while a repair is under way, else -1; and
  // until when it must have brought its first byte.
  int watched_fd();
  std::optional<TimePoint> deadline();

  // The client has closed, or says something that it has no right to: the repair is cancelled.
  void PeerHasGone();
  // Nothing has come in time: the client is told so at once, and the repair is cancelled.
  void Expire(TimePoint now);
  // Ends it, whatever it does, with this error. For the owner that stops.
  void Stop(const absl::Status& why);

 private:
  // Who may write on the socket: until the first byte of the repair anybody who has taken the
  // session out of kWaiting, then Run() only. While it tells of an error, what the client sends is
  // of no interest: it may be the very reason.
  enum class Phase { kRequest, kWaiting, kStreaming, kTellingError, kOver };

  absl::Status Handshake(TimePoint deadline);
  absl::StatusOr<EndpointRequest> ReadRequest(TimePoint deadline);
  absl::Status ReadFully(std::span<uint8_t> out, TimePoint deadline);
  absl::Status Repair(const EndpointRequest& request, Outcome* outcome);
  // False when somebody else has ended the session.
  bool BeginWaiting(RepairSource* source, Duration timeout);
  bool BeginStreaming();
  absl::Status SendFrame(EndpointFrame type, std::span<const uint8_t> payload);
  absl::Status SendText(EndpointFrame type, const std::string& text);
  // Tells the client why, unless somebody has ended the session.
  void SendError(const absl::Status& status);
  // Says why, as far as the socket takes it at once, and ends all that waits.
  void EndNow(const absl::Status& why, bool tell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StreamSocket socket_;
  const Options options_;
  const RepairSourceFactory* const factory_;
  const std::function<void()> on_change_;
  bool broken_ = false;  // a frame was not sent whole: no other may follow. Run()'s own

  Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kRequest;
  bool peer_gone_ ABSL_GUARDED_BY(mutex_) = false;
  RepairSource* source_ ABSL_GUARDED_BY(mutex_) = nullptr;
  TimePoint deadline_ ABSL_GUARDED_BY(mutex_){};
  absl::Status ended_because_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
