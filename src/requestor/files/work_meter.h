// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/progress_fn.h"

namespace ecpipe {

// Tells of work that passes over a file's bytes more than once, as so many bytes of the file. One
// thread.
class WorkMeter {
 public:
  // `work`: all bytes that all passes together have to do. `told` may be null; it outlives this.
  WorkMeter(const ProgressFn& told, uint64_t file_bytes, uint64_t work)
      : told_(told), file_bytes_(file_bytes), work_(work) {}

  // That much more is done.
  void Did(uint64_t bytes) { Reach(done_ + bytes); }
  // That much is done in all; never less than before.
  void Reach(uint64_t bytes) {
    done_ = std::clamp(bytes, done_, std::max(done_, work_));
    if (told_ && work_ > 0) told_(InFileBytes(), file_bytes_);
  }
  uint64_t done() const { return done_; }

 private:
  uint64_t InFileBytes() const {
    if (done_ >= work_) return file_bytes_;
    const double share = static_cast<double>(done_) / static_cast<double>(work_);
    return std::min(static_cast<uint64_t>(share * static_cast<double>(file_bytes_)), file_bytes_);
  }

  const ProgressFn& told_;
  const uint64_t file_bytes_;
  const uint64_t work_;
  uint64_t done_ = 0;
};

}  // namespace ecpipe
