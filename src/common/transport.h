// SPDX-License-Identifier: Apache-2.0
// The data plane behind one interface. A stream carries the frames of one edge of a plan, in the
// lane's order; its receiver opens it. Implementations: tcp_transport.h, redis_transport.h.
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
#include "common/frame.h"
#include "common/link_timing.h"
#include "common/repair_plan.h"
#include "common/wakeup.h"

namespace ecpipe {

class SliceReceiver {
 public:
  virtual ~SliceReceiver() = default;

  // Goes on receiving the frame `expected` into `payload` (expected.payload_bytes long, untouched
  // by the caller until this returns true). True: the frame is complete and its bytes are verified.
  // False: wait as poll_fd() says, then call again with the same arguments. An error ends the
  // stream: DATA_LOSS for a frame that is damaged or not the expected one, UNAVAILABLE when the
  // sender has gone, or the sender's own error, with the sender's node named.
  virtual absl::StatusOr<bool> TryReceive(const FrameHeader& expected,
                                          std::span<uint8_t> payload) = 0;

  virtual pollfd poll_fd() const = 0;
  // Bytes that have come off the network so far, with headers: grows while a large frame arrives.
  virtual uint64_t bytes_received() const = 0;
};

class SliceSender {
 public:
  virtual ~SliceSender() = default;

  // What the caller does next: send another frame at once, or nobody knows when.
  enum class Next { kFrame, kUnknown };

  // Goes on sending one frame; fills in its checksum. True: taken over completely, the payload may
  // be reused. False: wait as poll_fd() says, then call again with the same arguments. UNAVAILABLE
  // when the receiver has gone.
  virtual absl::StatusOr<bool> TrySend(const FrameHeader& header, std::span<const uint8_t> payload,
                                       Next next) = 0;

  // After the last frame: true once the receiver has taken everything and closed.
  virtual absl::StatusOr<bool> TryFinish() = 0;

  // UNAVAILABLE when the receiver is known to have gone. For senders that have nothing to send yet.
  virtual absl::Status CheckPeer() = 0;

  // Tells the receiver why no more frames come. Best effort, does not block.
  virtual void SendError(const FrameHeader& stream, const absl::Status& status) = 0;

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

  // Starts to open a stream from `input.address`; the connection is completed by TryReceive, which
  // also reports that it could not be made.
  virtual absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput& input,
                                                                 const StreamShape& shape) = 0;

  // Makes the sending end known under its edge and token. Until a receiver comes TrySend returns
  // false. `wakeup` is signalled when one does.
  virtual absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput& output,
                                                             const StreamShape& shape,
                                                             std::shared_ptr<Wakeup> wakeup) = 0;
};

}  // namespace ecpipe
