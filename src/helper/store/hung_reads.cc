// SPDX-License-Identifier: Apache-2.0
#include "helper/store/hung_reads.h"

#include <chrono>
#include <set>
#include <utility>

#include "base/fault_points.h"
#include "base/mutex.h"
#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr double kSlowBytesPerSecond = 4 << 20;  // of a disk that many read at once

}  // namespace

struct HungReads::State {
  State(const std::string& the_path, const Clock* the_clock)
      : path(the_path), fault("store.read:" + the_path), clock(the_clock) {}

  const std::string path;
  const std::string fault;
  const Clock* const clock;
  Mutex mutex;
  // By when, at the rate of a slow disk, they should have their bytes.
  std::multiset<TimePoint> running ABSL_GUARDED_BY(mutex);
  bool told ABSL_GUARDED_BY(mutex) = false;
};

class HungReads::WatchedBlock : public BlockReader {
 public:
  WatchedBlock(std::unique_ptr<BlockReader> block, std::shared_ptr<State> state)
      : block_(std::move(block)), state_(std::move(state)) {}

  uint64_t bytes() const override { return block_->bytes(); }
  std::optional<ChecksumKind> checksum() const override { return block_->checksum(); }
  bool has_checksums() const override { return block_->has_checksums(); }
  std::string stored_sha256() const override { return block_->stored_sha256(); }

  absl::Status ReadAt(uint64_t offset, std::span<uint8_t> out) override {
    const Running running(state_.get(), out.size());
    ECPIPE_RETURN_IF_ERROR(FaultPoint(state_->fault.c_str()));
    return block_->ReadAt(offset, out);
  }
  absl::StatusOr<bool> TryReadAt(uint64_t offset, std::span<uint8_t> out) override {
    return block_->TryReadAt(offset, out);
  }

 private:
  class Running {
   public:
    Running(State* state, size_t bytes) : state_(*state) {
      // What a slow disk takes for so many bytes is none of the time that it may hang.
      const Duration of_bytes = std::chrono::duration_cast<Duration>(
          std::chrono::duration<double>(static_cast<double>(bytes) / kSlowBytesPerSecond));
      MutexLock lock(&state_.mutex);
      entry_ = state_.running.insert(state_.clock->Now() + of_bytes);
    }
    ~Running() {
      MutexLock lock(&state_.mutex);
      state_.running.erase(entry_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    State& state_;
    std::multiset<TimePoint>::iterator entry_;
  };

  const std::unique_ptr<BlockReader> block_;
  const std::shared_ptr<State> state_;  // shared with HungReads
};

HungReads::HungReads(const std::string& path, const Clock* clock)
    : state_(std::make_shared<State>(path, clock)) {}

const std::string& HungReads::path() const { return state_->path; }

std::unique_ptr<BlockReader> HungReads::Watch(std::unique_ptr<BlockReader> block) const {
  return std::make_unique<WatchedBlock>(std::move(block), state_);
}

absl::Status HungReads::Check() const {
  const TimePoint due_by = state_->clock->Now() - kPatience;
  size_t hung = 0;
  bool news = false;
  {
    MutexLock lock(&state_->mutex);
    for (const TimePoint due : state_->running) {
      if (due > due_by) break;
      ++hung;
    }
    news = std::exchange(state_->told, hung >= kMost) != (hung >= kMost);
  }
  if (hung < kMost) {
    if (news) Log(LogLevel::kInfo, "store.root_answers", {{"root", state_->path}});
    return absl::OkStatus();
  }
  const std::string what = std::to_string(hung) + " reads of its blocks have not come back";
  if (news) Log(LogLevel::kWarning, "store.root_hangs", {{"root", state_->path}, {"reason", what}});
  return absl::UnavailableError(state_->path + " does not answer: " + what);
}

}  // namespace ecpipe
