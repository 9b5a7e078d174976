// SPDX-License-Identifier: Apache-2.0
#include "pipeline/local_reader.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/fault_points.h"
#include "base/guarded.h"
#include "base/mutex.h"
#include "base/status.h"

namespace ecpipe {

struct LocalReader::State final : ReadThread::Job {
  State(std::unique_ptr<BlockReader> the_block, const Options& the_options,
        std::shared_ptr<Wakeup> the_wakeup)
      : block(std::move(the_block)),
        block_bytes(block->bytes()),
        options(the_options),
        slot_bytes(static_cast<size_t>(
            std::min<uint64_t>(the_options.grid.slice_bytes, the_options.grid.bytes))),
        ring(slot_bytes * the_options.ring_slots * the_options.sub_blocks.size()),
        wakeup(std::move(the_wakeup)) {}

  uint8_t* Slot(uint32_t slot, size_t which) {
    return ring.data() + slot_bytes * (which * options.ring_slots + slot);
  }

  // The block's bytes by `read(offset, out)`, and zeros behind its end.
  template <typename Read>
  absl::StatusOr<bool> ReadPadded(const Read& read, uint64_t offset, std::span<uint8_t> out) {
    const uint64_t rest = block_bytes - std::min(offset, block_bytes);
    const auto within = static_cast<size_t>(std::min<uint64_t>(out.size(), rest));
    std::fill(out.begin() + static_cast<ptrdiff_t>(within), out.end(), uint8_t{0});
    if (within == 0) return true;
    return read(offset, out.first(within));
  }

  // Reads a slice into a slot by `read(offset, out)`, which says whether it could.
  template <typename Read>
  absl::StatusOr<bool> ReadBy(const Read& read, uint32_t ordinal, uint32_t slot) {
    ECPIPE_RETURN_IF_ERROR(FaultPoint("hop.read_block"));
    const uint32_t slice_index = options.slices.SliceIndex(ordinal);
    absl::StatusOr<bool> outcome = true;
    for (size_t i = 0; i < options.sub_blocks.size(); ++i) {
      const bool whole = options.layout.ForEachPiece(
          options.sub_blocks[i], options.grid.SliceOffset(slice_index),
          options.grid.SliceBytes(slice_index), [&](uint64_t offset, uint64_t at, uint64_t bytes) {
            outcome = ReadPadded(read, offset, {Slot(slot, i) + at, static_cast<size_t>(bytes)});
            return outcome.ok() && *outcome;
          });
      if (!whole) break;
    }
    return outcome;
  }

  void Publish(uint32_t read, const absl::Status& outcome) {
    bool signal = false;
    {
      MutexLock lock(&mutex);
      done = read;
      status = outcome;
      failed = !outcome.ok();
      signal = consumer_waits || !outcome.ok();
      consumer_waits = false;
    }
    if (signal) wakeup->Signal();
  }

  absl::Status ReadSlice(uint32_t ordinal) {
    const auto read = [&](uint64_t offset, std::span<uint8_t> out) -> absl::StatusOr<bool> {
      ECPIPE_RETURN_IF_ERROR(block->ReadAt(offset, out));
      return true;
    };
    return ReadBy(read, ordinal, ordinal % options.ring_slots).status();
  }

  absl::StatusOr<bool> TryReadSlice(uint32_t ordinal, uint32_t slot) {
    return ReadBy(
        [&](uint64_t offset, std::span<uint8_t> out) { return block->TryReadAt(offset, out); },
        ordinal, slot);
  }

  std::optional<uint32_t> Next() override {
    MutexLock lock(&mutex);
    if (done >= allowed || !status.ok()) return std::nullopt;
    return options.slices.SliceIndex(done);
  }

  void Read() override {
    uint32_t next = 0;
    {
      MutexLock lock(&mutex);
      next = done;
    }
    const absl::Status outcome = Guarded([&] { return ReadSlice(next); });
    Publish(outcome.ok() ? next + 1 : next, outcome);
  }

  const std::unique_ptr<BlockReader> block;
  const uint64_t block_bytes;  // as it was opened: what a block has lost since is not zeros
  const Options options;
  const size_t slot_bytes;
  AlignedBuffer ring;
  const std::shared_ptr<Wakeup> wakeup;

  Mutex mutex;
  uint32_t allowed ABSL_GUARDED_BY(mutex) = 0;
  uint32_t done ABSL_GUARDED_BY(mutex) = 0;
  absl::Status status ABSL_GUARDED_BY(mutex);
  std::atomic<bool> failed = false;  // whether `status` is an error
  bool consumer_waits ABSL_GUARDED_BY(mutex) = false;
};

LocalReader::LocalReader(std::unique_ptr<BlockReader> block, const Options& options,
                         std::shared_ptr<Wakeup> wakeup, std::shared_ptr<ReadThread> thread)
    : state_(std::make_shared<State>(std::move(block), options, std::move(wakeup))),
      thread_(std::move(thread)) {}

LocalReader::~LocalReader() {
  if (by_thread_) thread_->Remove(state_.get());
}

void LocalReader::Allow(uint32_t ordinal) {
  allowed_ = ordinal;
  if (!by_thread_) return;
  // Wake the thread for half a ring at a time: waking it costs more than reading a slice.
  const uint32_t step = std::max(1u, state_->options.ring_slots / 2);
  if (ordinal >= thread_allowed_ + step || ordinal == state_->options.slices.count()) {
    AllowThread(ordinal);
  }
}

void LocalReader::AllowThread(uint32_t ordinal) {
  if (ordinal == thread_allowed_) return;
  thread_allowed_ = ordinal;
  {
    MutexLock lock(&state_->mutex);
    state_->allowed = ordinal;
  }
  thread_->Wake();
}

absl::StatusOr<uint32_t> LocalReader::Progress(uint32_t seen) {
  if (!by_thread_) {
    if (seen == allowed_) return seen;
    ECPIPE_ASSIGN_OR_RETURN(const bool read, state_->TryReadSlice(seen, SlotOf(seen)));
    if (read) return seen + 1;
    {
      MutexLock lock(&state_->mutex);
      state_->done = seen;
    }
    ECPIPE_RETURN_IF_ERROR(thread_->Add(state_));
    by_thread_ = true;
    AllowThread(allowed_);
  }
  MutexLock lock(&state_->mutex);
  if (!state_->status.ok()) return state_->status;
  state_->consumer_waits = state_->done == seen;
  return state_->done;
}

absl::Status LocalReader::failure() const {
  if (!state_->failed) return absl::OkStatus();  // asked at each turn: without the lock
  MutexLock lock(&state_->mutex);
  return state_->status;
}

uint32_t LocalReader::SlotOf(uint32_t ordinal) const {
  // Without the thread there is one slice at a time: the same bytes again stay in the cache.
  const bool one_slot = !by_thread_ && state_->options.slots == Slots::kFreeOnceCombined;
  return one_slot ? 0 : ordinal % state_->options.ring_slots;
}

uint8_t* LocalReader::Slice(uint32_t ordinal, size_t which) {
  return state_->Slot(SlotOf(ordinal), which);
}

}  // namespace ecpipe
