// SPDX-License-Identifier: Apache-2.0
// Runs one part of a repair, that is all hops of one node, on the calling thread: a poll() loop
// over its streams. Helpers and requestors run this same engine.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes/shared_room.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "model/plan/repair_plan.h"
#include "net/rate_limiter.h"
#include "net/transport.h"
#include "pipeline/block_reader.h"
#include "pipeline/hop_runner.h"
#include "pipeline/slice_sink.h"

namespace ecpipe {

struct PartOptions {
  // The part gives up if for this long no slice comes to its end and fewer bytes move, on all its
  // streams together, than at kLeastBytesPerSecond.
  Duration stall_timeout = std::chrono::seconds(10);
  // Memory of each ring of slice buffers: there is one ring for a local block, and one for each row
  // of each input. The hops of a part share it.
  size_t ring_bytes = 512u << 10;
  // What each stream holds beside that: buffers of TLS.
  size_t stream_bytes = 0;
  // For what PartBufferBytes says of all parts that share it; null: no limit.
  std::shared_ptr<SharedRoom> buffers = nullptr;
  // Limit what all parts of the process send over the network, except probes, and what they
  // receive. The limiters outlive the parts. Null: no limit. Waiting for them is not a stall.
  RateLimiter* send_limiter = nullptr;
  RateLimiter* receive_limiter = nullptr;
};

// A peer that sends a byte from time to time would hold a session for days. No link on which a
// repair has a point is that slow.
inline constexpr double kLeastBytesPerSecond = 4096;

// Totals of one part. Wire bytes include frame headers.
struct PartTraffic {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t block_bytes_read = 0;
};

// The memory for slice buffers and streams that a part will take.
uint64_t PartBufferBytes(const RepairPart& part, const PartOptions& options);

class PartRunner {
 public:
  // The open block of each hop that has one, by the hop's index in part.hops.
  using Blocks = std::map<size_t, std::unique_ptr<BlockReader>>;

  // `part` has passed ValidatePart. Opens every stream, so that a peer may dial once this returns.
  // `transport` and `sink` outlive the runner.
  static absl::StatusOr<std::unique_ptr<PartRunner>> Create(RepairPart part, Blocks blocks,
                                                            Transport* transport, SliceSink* sink,
                                                            const PartOptions& options);

  // Returns when every hop has sent and stored all its slices, or with the first error. After an
  // error all streams are closed, which cancels the hops upstream, and the hops downstream have
  // been told why. DEADLINE_EXCEEDED names what the part was waiting for. RESOURCE_EXHAUSTED:
  // memory or a thread is lacking here. Call it once.
  absl::Status Run();

  // Makes Run() return `reason`, soon. Any thread; before, during or after Run().
  void Cancel(absl::Status reason);

  // How far the part has come. Returns false if its thread does not answer within `timeout`,
  // because it has ended, or because a disk that it writes to hangs. Any thread.
  bool Progress(Duration timeout, std::vector<HopProgress>* progress);

  const RepairPart& part() const { return part_; }
  // Any thread.
  PartTraffic traffic() const;
  // After Run(): the timings of the streams that the plan wants measured; none after an error.
  const std::vector<LinkTiming>& link_timings() const { return link_timings_; }

 private:
  PartRunner(RepairPart part, const PartOptions& options)
      : part_(std::move(part)), options_(options) {}

  absl::Status Loop();
  uint32_t SendLimit() const;
  absl::StatusOr<bool> StepAll();
  // How long until the rate limit may release a frame that it holds back; nothing if it holds none.
  std::optional<Duration> HeldBackFor() const;
  absl::Status WaitForEvents(TimePoint deadline);
  absl::Status Stalled() const;
  absl::Status cancelled();
  void PublishTraffic();
  void AnswerProgress();

  const RepairPart part_;
  const PartOptions options_;
  std::optional<SharedRoom::Share> buffers_;                           // of options_.buffers
  const std::shared_ptr<Wakeup> wakeup_ = std::make_shared<Wakeup>();  // shared: see ConnectionSlot
  std::shared_ptr<ReadThread> read_thread_ = std::make_shared<ReadThread>();
  std::vector<std::unique_ptr<HopRunner>> hops_;
  std::vector<pollfd> polled_;
  std::vector<LinkTiming> link_timings_;
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::atomic<uint64_t> block_bytes_read_{0};
  std::atomic<uint32_t> progress_asked_{0};  // questions so far
  uint32_t progress_given_ = 0;              // questions answered; used by the part's thread only
  Mutex mutex_;
  CondVar progress_answered_;
  absl::Status cancel_reason_ ABSL_GUARDED_BY(mutex_);
  uint32_t progress_of_ ABSL_GUARDED_BY(mutex_) = 0;  // the latest question that has its answer
  std::vector<HopProgress> progress_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
