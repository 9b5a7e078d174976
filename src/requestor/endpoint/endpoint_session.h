// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "model/plan/repair_plan.h"
#include "net/stream_socket.h"
#include "requestor/endpoint/endpoint_access.h"
#include "requestor/endpoint/endpoint_source.h"

namespace ecpipe {

// One connection of an endpoint, which is one repair. Run() is its thread. While that waits for
// bytes the owner watches the peer, and reports by PeerHasGone() and Expire().
class EndpointSession {
 public:
  struct Options {
    Duration request_timeout = std::chrono::seconds(5);  // until the request is complete
    Duration write_timeout = std::chrono::seconds(60);   // without the client reading a byte
  };
  struct Outcome {
    bool repair = false;  // a request has come
    std::string client;   // as it calls itself, and what it asked for
    std::string block;
    absl::Status status;
    std::optional<RepairId> repair_id;  // once the coordinator has granted one
    uint64_t bytes = 0;                 // bytes of the block that were sent
  };

  // Run() calls `on_change` when the result of the function that says what to watch changes. All
  // pointers outlive the session.
  EndpointSession(StreamSocket socket, const Options& options, const EndpointAccess* access,
                  const RepairSourceFactory* factory, std::function<void()> on_change);

  // Serves the client to the end. Call it once.
  Outcome Run();

  // What the owner has to watch, from any thread: the socket while a repair is running, otherwise
  // -1; and the time by which the first byte must have come.
  int watched_fd();
  std::optional<TimePoint> deadline();
  // Whether no valid request has come yet.
  bool asking();

  // The client has closed the connection, or has sent bytes that it must not send: cancels the
  // repair, unless its last bytes are being sent.
  void PeerHasGone();
  // No byte has come in time: tells the client at once, and cancels the repair.
  void Expire(TimePoint now);
  // Ends the session with this error, whatever it does. For an owner that stops.
  void Stop(const absl::Status& why);

 private:
  // Says who may write on the socket: until the first byte of the repair the thread that has taken
  // the session out of kWaiting, after that only Run(). While an error is being sent, bytes from
  // the client are ignored: they may be the reason for the error.
  // In kComplete the last bytes are sent: the client may leave, and nothing is cancelled any more.
  enum class Phase { kRequest, kWaiting, kStreaming, kComplete, kTellingError, kOver };

  absl::Status Handshake(TimePoint deadline);
  absl::StatusOr<EndpointRequest> ReadRequest(TimePoint deadline);
  absl::Status ReadFully(std::span<uint8_t> out, TimePoint deadline);
  absl::Status Repair(const EndpointRequest& request, Outcome* outcome);
  // Returns false if another thread has ended the session.
  bool BeginWaiting(RepairSource* source, Duration timeout);
  bool BeginStreaming();
  void Complete();
  absl::Status SendHeader(const EndpointRequest& request, const std::optional<RepairReport>& begun);
  // Sends the same piece of each target, from `taken` bytes of the range on, as far as each
  // reaches. Adds what was sent to `sent`.
  absl::Status SendPieces(const EndpointRequest& request, uint64_t taken,
                          std::span<const std::span<const uint8_t>> pieces, uint64_t* sent);
  // `target` is as in EndpointFrameHeader.
  absl::Status SendFrame(EndpointFrame type, std::span<const uint8_t> payload, uint16_t target = 0);
  absl::Status SendText(EndpointFrame type, const std::string& text);
  // Sends the error to the client, unless another thread has ended the session.
  void SendError(const absl::Status& status);
  // Sends the error as far as the socket takes it at once, and ends all waiting.
  void EndNow(const absl::Status& why, bool tell) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StreamSocket socket_;
  const Options options_;
  const EndpointAccess* const access_;
  const RepairSourceFactory* const factory_;
  const std::function<void()> on_change_;
  bool broken_ = false;  // a frame was not sent whole, so no other may follow; used only by Run()

  Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kRequest;
  bool peer_gone_ ABSL_GUARDED_BY(mutex_) = false;
  RepairSource* source_ ABSL_GUARDED_BY(mutex_) = nullptr;
  TimePoint deadline_ ABSL_GUARDED_BY(mutex_){};
  absl::Status ended_because_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
