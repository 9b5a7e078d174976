// SPDX-License-Identifier: Apache-2.0
#include "pipeline/local_reader.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/fault_points.h"
#include "base/mutex.h"
#include "base/status.h"

namespace ecpipe {

struct LocalReader::State {
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

  // Waits until more slices may be read. Returns the limit, or nothing when it is time to stop.
  uint32_t WaitForWork(uint32_t read) {
    MutexLock lock(&mutex);
    while (!stop && allowed <= read) {
      sleeping = true;
      work.Wait(lock);
      sleeping = false;
    }
    return stop ? 0 : allowed;
  }

  // False when it is time to stop.
  bool Publish(uint32_t read, const absl::Status& outcome) {
    bool signal = false;
    bool go_on = false;
    {
      MutexLock lock(&mutex);
      done = read;
      status = outcome;
      signal = consumer_waits;
      consumer_waits = false;
      go_on = !stop;
    }
    if (signal) wakeup->Signal();
    return go_on;
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

  // The thread: reads from slice `read` on to the end.
  void Run(uint32_t read) {
    while (read < options.slices.count()) {
      const uint32_t limit = WaitForWork(read);
      if (limit == 0) break;
      for (; read < limit; ++read) {
        if (absl::Status failed = ReadSlice(read); !failed.ok()) {
          Publish(read, failed);
          Exit();
          return;
        }
        if (!Publish(read + 1, absl::OkStatus())) break;
      }
    }
    Exit();
  }

  void Exit() {
    MutexLock lock(&mutex);
    exited = true;
    end.NotifyAll();
  }

  const std::unique_ptr<BlockReader> block;
  const uint64_t block_bytes;  // as it was opened: what a block has lost since is not zeros
  const Options options;
  const size_t slot_bytes;
  AlignedBuffer ring;
  const std::shared_ptr<Wakeup> wakeup;

  Mutex mutex;
  CondVar work;
  CondVar end;
  uint32_t allowed ABSL_GUARDED_BY(mutex) = 0;
  uint32_t done ABSL_GUARDED_BY(mutex) = 0;
  absl::Status status ABSL_GUARDED_BY(mutex);
  bool sleeping ABSL_GUARDED_BY(mutex) = false;
  bool consumer_waits ABSL_GUARDED_BY(mutex) = false;
  bool stop ABSL_GUARDED_BY(mutex) = false;
  bool exited ABSL_GUARDED_BY(mutex) = false;
};

LocalReader::LocalReader(std::unique_ptr<BlockReader> block, const Options& options,
                         std::shared_ptr<Wakeup> wakeup)
    : state_(std::make_shared<State>(std::move(block), options, std::move(wakeup))) {}

void LocalReader::Stop() {
  constexpr auto kPatience = std::chrono::seconds(2);
  if (stopped_by_ || !thread_.joinable()) return;
  stopped_by_ = Clock::System().Now() + kPatience;
  MutexLock lock(&state_->mutex);
  state_->stop = true;
  state_->work.NotifyAll();
}

LocalReader::~LocalReader() {
  if (!thread_.joinable()) return;
  Stop();
  bool exited = false;
  {
    MutexLock lock(&state_->mutex);
    while (!state_->exited && state_->end.WaitUntil(lock, *stopped_by_)) {
    }
    exited = state_->exited;
  }
  if (exited) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LocalReader::Allow(uint32_t ordinal) {
  allowed_ = ordinal;
  if (!thread_.joinable()) return;
  // Wake the thread for half a ring at a time: waking it costs more than reading a slice.
  const uint32_t step = std::max(1u, state_->options.ring_slots / 2);
  if (ordinal >= thread_allowed_ + step || ordinal == state_->options.slices.count()) {
    AllowThread(ordinal);
  }
}

void LocalReader::AllowThread(uint32_t ordinal) {
  if (ordinal == thread_allowed_) return;
  thread_allowed_ = ordinal;
  bool wake = false;
  {
    MutexLock lock(&state_->mutex);
    state_->allowed = ordinal;
    wake = state_->sleeping;
  }
  if (wake) state_->work.NotifyOne();
}

absl::StatusOr<uint32_t> LocalReader::Progress(uint32_t seen) {
  if (!thread_.joinable()) {
    if (seen == allowed_) return seen;
    ECPIPE_ASSIGN_OR_RETURN(const bool read, state_->TryReadSlice(seen, SlotOf(seen)));
    if (read) return seen + 1;
    {
      MutexLock lock(&state_->mutex);
      state_->done = seen;
    }
    ECPIPE_ASSIGN_OR_RETURN(thread_, Thread::Start([state = state_, seen] { state->Run(seen); }));
    AllowThread(allowed_);
  }
  MutexLock lock(&state_->mutex);
  if (!state_->status.ok()) return state_->status;
  state_->consumer_waits = state_->done == seen;
  return state_->done;
}

uint32_t LocalReader::SlotOf(uint32_t ordinal) const {
  // Without the thread there is one slice at a time: the same bytes again stay in the cache.
  const bool one_slot = !thread_.joinable() && state_->options.slots == Slots::kFreeOnceCombined;
  return one_slot ? 0 : ordinal % state_->options.ring_slots;
}

uint8_t* LocalReader::Slice(uint32_t ordinal, size_t which) {
  return state_->Slot(SlotOf(ordinal), which);
}

}  // namespace ecpipe
