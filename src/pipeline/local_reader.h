// SPDX-License-Identifier: Apache-2.0
// Reads a hop's local block for the pipeline; behind the block's end there are zeros. What the page
// cache has is read at once, on the part's own thread, just before it is needed. From the first
// slice on that would have to wait for a disk, a thread reads ahead: a slow disk then overlaps with
// the network, and a disk that hangs does not hang the repair.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/aligned_buffer.h"
#include "common/block_layout.h"
#include "common/slice_grid.h"
#include "common/thread.h"
#include "common/wakeup.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Used by one thread, the part's; the reading thread, if there is one, is its own affair.
class LocalReader {
 public:
  // Until when the pipeline needs a slice's bytes.
  enum class Slots { kFreeOnceCombined, kHeldUntilSent };
  struct Options {
    SliceGrid grid;
    LaneSlices slices;
    BlockLayout layout;
    std::vector<uint32_t> sub_blocks = {0};  // those that are read
    uint32_t ring_slots = 0;
    Slots slots = Slots::kHeldUntilSent;
  };

  // Owns the block and the ring of slice buffers. `wakeup` is signalled when slices have come after
  // Progress() said that there were none.
  LocalReader(std::unique_ptr<BlockReader> block, const Options& options,
              std::shared_ptr<Wakeup> wakeup);
  // Stops reading. Waits for a read under way a short while only: a read that hangs keeps its
  // buffers until the disk answers, and its thread ends then.
  ~LocalReader();

  // Slices below `ordinal` may be read: their slots are free. Monotonic.
  void Allow(uint32_t ordinal);

  // How many slices have been read, `seen` or more. All before `seen` have been combined. Reads the
  // next one if that needs no waiting. When the result is `seen`, the wakeup is signalled as soon
  // as there is more. An error when the block could not be read.
  absl::StatusOr<uint32_t> Progress(uint32_t seen);

  // The bytes of a slice that has been read and whose slot has not been allowed again, of one of
  // the sub-blocks that are read, by its place in Options::sub_blocks.
  uint8_t* Slice(uint32_t ordinal, size_t which);

 private:
  struct State;
  void AllowThread(uint32_t ordinal);
  uint32_t SlotOf(uint32_t ordinal) const;

  // Shared with the reading thread, which may outlive the reader when a disk hangs.
  const std::shared_ptr<State> state_;
  uint32_t allowed_ = 0;         // by the pipeline
  uint32_t thread_allowed_ = 0;  // as the thread has been told
  Thread thread_;                // once something had to wait
};

}  // namespace ecpipe
