// SPDX-License-Identifier: Apache-2.0
// Bytes from one thread to another within a process.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes/aligned_buffer.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "fakes/byte_stream.h"

namespace ecpipe {

class MemoryStream : public ByteStream {
 public:
  // `capacity`: bytes under way at most, 1 or more.
  explicit MemoryStream(size_t capacity);

  // `wakeup`, if there is one, is signalled when the other end attaches. False when this end was
  // attached before.
  bool Attach(End end, std::shared_ptr<Wakeup> wakeup);

  void Close(End end) override;
  absl::StatusOr<size_t> Put(std::span<const uint8_t> bytes) override;
  absl::StatusOr<size_t> Take(std::span<uint8_t> out) override;
  bool Attached(End end) override;
  bool Closed(End end) override;
  bool Empty() override;
  int fd(End end) override;

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
