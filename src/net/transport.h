// SPDX-License-Identifier: Apache-2.0
// The data plane behind one interface. A stream carries the frames of one edge of a plan, in the
// lane's order; its receiver opens it. Implementations: tcp_transport.h, redis/redis_transport.h.
//
// Streams never block: they make what progress they can and say what to poll for. One stream is
// used by one thread at a time. Destroying a stream closes it; that is how a receiver cancels its
// sender.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/wakeup.h"
#include "model/link_timing.h"
#include "model/plan/repair_plan.h"
#include "net/frame.h"

namespace ecpipe {

class SliceReceiver {
 public:
  virtual ~SliceReceiver() = default;

  // Continues to receive the frame `expected` into `payload`, which is expected.payload_bytes long
  // and which the caller leaves alone until this returns true. True: the frame is complete and its
  // bytes are verified. False: wait as poll_fd() says, then call again with the same arguments. An
  // error ends the stream: DATA_LOSS if the frame is damaged or is not the expected one,
  // UNAVAILABLE if the sender has gone, or the sender's own error, which names the sender's node.
  virtual absl::StatusOr<bool> TryReceive(const FrameHeader& expected,
                                          std::span<uint8_t> payload) = 0;

  virtual pollfd poll_fd() const = 0;
  // Bytes received from the network so far, headers included; grows while a large frame arrives.
  virtual uint64_t bytes_received() const = 0;
};

class SliceSender {
 public:
  virtual ~SliceSender() = default;

  // Whether the caller sends another frame at once after this one.
  enum class Next { kFrame, kUnknown };

  // Continues to send one frame and fills in its checksum. True: the frame is taken over
  // completely, and the caller may reuse the payload. False: wait as poll_fd() says, then call
  // again with the same arguments. UNAVAILABLE: the receiver has gone.
  virtual absl::StatusOr<bool> TrySend(const FrameHeader& header, std::span<const uint8_t> payload,
                                       Next next) = 0;

  // Call after the last frame: true once the receiver has taken everything and closed.
  virtual absl::StatusOr<bool> TryFinish() = 0;

  // UNAVAILABLE if the receiver has gone, as far as that is known. For senders that have nothing to
  // send yet.
  virtual absl::Status CheckPeer() = 0;

  // Tells the receiver why no more frames come. Best effort; a frame under way is sent to its end
  // before, for which it waits until `deadline`, so its payload must still be there.
  virtual void SendError(const FrameHeader& stream, const absl::Status& status,
                         TimePoint deadline) = 0;

  // fd of -1: nothing to poll yet; the wakeup given to Offer() is signalled when that changes.
  virtual pollfd poll_fd() const = 0;
  virtual uint64_t bytes_sent() const = 0;
  // Bytes and times so far, and after TryFinish() was true of the whole stream; `to` is left empty.
  virtual LinkTiming timing() const = 0;
};

// What both ends of a stream know from the plan.
struct StreamShape {
  uint64_t frame_count = 0;      // frames over the whole life of the stream
  uint32_t largest_payload = 0;  // bytes
};

// Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;

  // Starts to open a stream from `input.address`. TryReceive completes the connection and reports a
  // failure to connect.
  virtual absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput& input,
                                                                 const StreamShape& shape) = 0;

  // Registers the sending end under its edge and token. TrySend returns false until a receiver
  // comes; then `wakeup` is signalled.
  virtual absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput& output,
                                                             const StreamShape& shape,
                                                             std::shared_ptr<Wakeup> wakeup) = 0;
};

}  // namespace ecpipe
