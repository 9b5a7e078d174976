// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"

namespace ecpipe {

// Bytes from a sender to a receiver, with what a socket has: a bounded buffer, a descriptor to poll
// at each end, and a hang-up when the other end has been closed. Each end is there from when it is
// attached until Close(), and used by one thread at a time.
class ByteStream {
 public:
  enum End : size_t { kSender = 0, kReceiver = 1 };

  virtual ~ByteStream() = default;

  // The other end sees a hang-up. What has been put can still be taken.
  virtual void Close(End end) = 0;

  // Takes over as many bytes as there is space for. 0: poll fd(kSender), which becomes readable
  // when all of `bytes`, or a whole buffer, has space. UNAVAILABLE when the receiver has closed.
  virtual absl::StatusOr<size_t> Put(std::span<const uint8_t> bytes) = 0;
  // Fills as much of `out` as has been put. 0: poll fd(kReceiver), which becomes readable when all
  // of `out`, or a whole buffer, is there. UNAVAILABLE once a closed sender's bytes are all taken.
  virtual absl::StatusOr<size_t> Take(std::span<uint8_t> out) = 0;

  // As the other end knows it.
  virtual bool Attached(End end) = 0;
  virtual bool Closed(End end) = 0;
  // Whether everything that was put has been taken.
  virtual bool Empty() = 0;
  // Readable after Put() or Take() returned 0 and can go on, and hung up when the other end has
  // closed. -1 once this end is closed.
  virtual int fd(End end) = 0;
};

}  // namespace ecpipe
