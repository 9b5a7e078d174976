// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.h"

namespace ecpipe {

// What blocks under way will still take of disks whose file systems set no room aside for them.
// Thread-safe. Promises outlive it.
class PromisedRoom {
 private:
  struct State {
    Mutex mutex;
    std::map<dev_t, uint64_t> bytes;  // guarded by the mutex
  };

 public:
  // Used by one thread at a time. It gives back at its end what was not written.
  class Promise {
   public:
    Promise(std::shared_ptr<State> state, dev_t disk) : state_(std::move(state)), disk_(disk) {}
    ~Promise() { Written(left_); }
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;

    // So many bytes are on the disk by now, and no longer free there.
    void Written(uint64_t bytes) {
      bytes = std::min(bytes, left_);
      left_ -= bytes;
      MutexLock lock(&state_->mutex);
      uint64_t& of_disk = state_->bytes[disk_];
      of_disk -= bytes;
      if (of_disk == 0) state_->bytes.erase(disk_);
    }

   private:
    friend class PromisedRoom;
    const std::shared_ptr<State> state_;  // shared with PromisedRoom
    const dev_t disk_;
    uint64_t left_ = 0;
  };

  std::shared_ptr<Promise> Make(dev_t disk, uint64_t bytes) {
    auto promise = std::make_shared<Promise>(state_, disk);
    MutexLock lock(&state_->mutex);
    state_->bytes[disk] += bytes;
    promise->left_ = bytes;
    return promise;
  }

  // What is left of `free_bytes` of the disk.
  uint64_t Left(dev_t disk, uint64_t free_bytes) const {
    MutexLock lock(&state_->mutex);
    const auto found = state_->bytes.find(disk);
    return found == state_->bytes.end() ? free_bytes
                                        : free_bytes - std::min(free_bytes, found->second);
  }

 private:
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // shared with the promises
};

}  // namespace ecpipe
