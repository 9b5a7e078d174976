// SPDX-License-Identifier: Apache-2.0
// Reads a hop's local block for the pipeline; beyond the end of the block it gives zeros. Bytes in
// the page cache are read on the thread of the part, just before they are needed. As soon as a
// slice would have to wait for a disk, the part's reading thread reads ahead: a slow disk then
// overlaps with the network, and a disk that hangs does not hang the repair.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes/aligned_buffer.h"
#include "base/wakeup.h"
#include "model/plan/block_layout.h"
#include "model/plan/slice_grid.h"
#include "pipeline/block_reader.h"
#include "pipeline/read_thread.h"

namespace ecpipe {

// Used only by the thread of the part.
class LocalReader {
 public:
  // How long the pipeline needs the bytes of a slice.
  enum class Slots { kFreeOnceCombined, kHeldUntilSent };
  struct Options {
    SliceGrid grid;
    LaneSlices slices;
    BlockLayout layout;
    std::vector<uint32_t> sub_blocks = {0};  // the sub-blocks to read
    uint32_t ring_slots = 0;
    Slots slots = Slots::kHeldUntilSent;
  };

  // Owns the block and the ring of slice buffers. `wakeup` is signalled when slices have come after
  // Progress() said that there were none. `thread` is shared by the readers of a part.
  LocalReader(std::unique_ptr<BlockReader> block, const Options& options,
              std::shared_ptr<Wakeup> wakeup,
              std::shared_ptr<ReadThread> thread = std::make_shared<ReadThread>());
  // Stops reading. A read that is running keeps its block and its buffers until the disk answers.
  ~LocalReader();

  // Slices below `ordinal` may be read: their slots are free. Monotonic.
  void Allow(uint32_t ordinal);

  // Returns how many slices have been read, at least `seen`; all slices before `seen` have been
  // combined. Reads the next slice if that needs no waiting. If the result is `seen`, the wakeup is
  // signalled as soon as there are more. An error if the block could not be read.
  absl::StatusOr<uint32_t> Progress(uint32_t seen);

  // Why no further slice can be read, also if nobody has come to it yet; the wakeup is signalled
  // when that happens. OK: that is not known.
  absl::Status failure() const;

  // Whether slices from `seen` on are with the disk. The reader may not have asked it for a slice
  // that is allowed: it asks for half a ring at a time.
  bool WaitsForDisk(uint32_t seen) const { return thread_allowed_ > seen; }

  // The bytes of a slice of one sub-block, which is named by its place in Options::sub_blocks. The
  // slice must have been read, and its slot must not have been allowed for another slice since.
  uint8_t* Slice(uint32_t ordinal, size_t which);

 private:
  struct State;
  void AllowThread(uint32_t ordinal);
  uint32_t SlotOf(uint32_t ordinal) const;

  // Shared with the reading thread, which may outlive the reader when a disk hangs.
  const std::shared_ptr<State> state_;
  uint32_t allowed_ = 0;         // what the pipeline has allowed
  uint32_t thread_allowed_ = 0;  // what the thread was told last
  const std::shared_ptr<ReadThread> thread_;
  bool by_thread_ = false;  // since a read first had to wait
};

}  // namespace ecpipe
