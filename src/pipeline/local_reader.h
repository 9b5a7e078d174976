// SPDX-License-Identifier: Apache-2.0
// Reads a hop's local block ahead of the pipeline, on a thread of its own: a slow disk then overlaps
// with the network, and a disk that hangs does not hang the repair.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "common/aligned_buffer.h"
#include "common/slice_grid.h"
#include "common/wakeup.h"
#include "pipeline/block_reader.h"

namespace ecpipe {

// Used by one thread, the part's; the reading thread is its own affair.
class LocalReader {
 public:
  struct Options {
    SliceGrid grid;
    LaneSlices slices;
    uint32_t ring_slots = 0;
  };

  // Owns the block and the ring of slice buffers. `wakeup` is signalled when slices have come after Progress() said
  // that there were none.
  LocalReader(std::unique_ptr<BlockReader> block, const Options& options,
              std::shared_ptr<Wakeup> wakeup);
  // Stops reading. Waits for a read under way a short while only: a read that hangs keeps its
  // buffers until the disk answers, and its thread ends then.
  ~LocalReader();

  // Slices below `ordinal` may be read: their slots are free. Monotonic.
  void Allow(uint32_t ordinal);

  // How many slices have been read. When that is `seen` and no more, the wakeup is signalled at the next
  // one. An error when the block could not be read.
  absl::StatusOr<uint32_t> Progress(uint32_t seen);

  // The bytes of a slice that has been read and whose slot has not been allowed again.
  uint8_t* Slice(uint32_t ordinal);

 private:
  struct State;

  // Shared with the reading thread, which may outlive the reader when a disk hangs.
  const std::shared_ptr<State> state_;
  uint32_t allowed_ = 0;
  std::thread thread_;
};

}  // namespace ecpipe
