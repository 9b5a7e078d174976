// SPDX-License-Identifier: Apache-2.0
// Bytes from one thread to another within a process, with what a socket has: a bounded buffer, a
// descriptor to poll at each end, and a hang-up when the other end has been closed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/aligned_buffer.h"
#include "common/mutex.h"
#include "common/unique_fd.h"
#include "common/wakeup.h"

namespace ecpipe {

// Each end is used by one thread at a time. An end is there from Attach() until Close().
class MemoryStream {
 public:
  enum End : size_t { kSender = 0, kReceiver = 1 };

  // `capacity`: bytes under way at most, 1 or more.
  explicit MemoryStream(size_t capacity);

  // `wakeup`, if there is one, is signalled when the other end attaches. False when this end was
  // attached before.
  bool Attach(End end, std::shared_ptr<Wakeup> wakeup);
  // The other end sees a hang-up. What has been put can still be taken.
  void Close(End end);

  // Takes over as many bytes as there is space for. 0: poll fd(kSender), which becomes readable
  // when all of `bytes`, or a whole buffer, has space. UNAVAILABLE when the receiver has closed.
  absl::StatusOr<size_t> Put(std::span<const uint8_t> bytes);
  // Fills as much of `out` as has been put. 0: poll fd(kReceiver), which becomes readable when all
  // of `out`, or a whole buffer, is there. UNAVAILABLE once a closed sender's bytes are all taken.
  absl::StatusOr<size_t> Take(std::span<uint8_t> out);

  bool Attached(End end);
  bool Closed(End end);
  // Whether everything that was put has been taken.
  bool Empty();
  // Readable after Put() or Take() returned 0 and can go on, and hung up when the other end has
  // closed. -1 once this end is closed.
  int fd(End end);

 private:
  struct EndState {
    UniqueFd fd;  // one of a connected pair: a byte in it means that this end can go on
    std::shared_ptr<Wakeup> wakeup;  // shared with the end's owner, who may end meanwhile
    bool attached = false;
    bool closed = false;
    bool rung = false;  // a byte is in the descriptor
    size_t wanted = 0;  // bytes, or space, that this end waits for; 0: it does not wait
  };

  static End OtherEnd(End end) { return end == kSender ? kReceiver : kSender; }
  size_t Used() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Silence(End end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Rings at `end` when `amount` is what it waits for.
  void RingIfEnough(End end, size_t amount) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t capacity_;
  AlignedBuffer buffer_;  // the sender writes free bytes and the receiver reads used ones, unlocked
  Mutex mutex_;
  std::array<EndState, 2> ends_ ABSL_GUARDED_BY(mutex_);
  uint64_t put_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ecpipe
