// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/mutex.h"

namespace ecpipe {

// Something of which all who hold some may have only so much together: bytes of buffers, blocks of
// reports. Thread-safe; outlives its shares.
class SharedRoom {
 public:
  explicit SharedRoom(uint64_t most) : most_(most) {}

  // What one of them holds, for as long as it lives. Used by one thread.
  class Share {
   public:
    explicit Share(SharedRoom* room) : room_(room) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() {
      MutexLock lock(&room_->mutex_);
      room_->taken_ -= taken_;
    }

    // False: there is no room beside what others hold. Who is alone may have as much as it needs,
    // so that it can end.
    bool Take(uint64_t amount) {
      MutexLock lock(&room_->mutex_);
      const bool alone = room_->taken_ == taken_;
      if (!alone && amount > room_->most_ - std::min(room_->most_, room_->taken_)) return false;
      room_->taken_ += amount;
      taken_ += amount;
      return true;
    }

   private:
    SharedRoom* const room_;
    uint64_t taken_ = 0;
  };

  uint64_t most() const { return most_; }

 private:
  const uint64_t most_;
  Mutex mutex_;
  uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace ecpipe
