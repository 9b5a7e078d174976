// SPDX-License-Identifier: Apache-2.0
// The requestor library: asks for blocks, or ranges of them, and gets their bytes, verified.
//
//   auto requestor = Requestor::Connect({.coordinator = "127.0.0.1:7700"});
//   auto report = (*requestor)->RepairToFiles({.block_ids = {"f-s00000-b03"}},
//                                             {"/blocks/f-s00000-b03"});
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/file_io.h"
#include "common/mutex.h"
#include "common/tls.h"
#include "common/transport.h"
#include "pipeline/part_runner.h"
#include "requestor/coordinator_api.h"
#include "requestor/repair_sink.h"
#include "requestor/repair_watch.h"

namespace ecpipe {

// What a repair took. `seconds` runs from the call to the last verified byte, the coordinator's
// planning and handing out included; `commit_seconds` is what making files durable took after
// that. Of blocks that nodes take, `seconds` is the coordinator's count, to the last block stored.
struct RepairReport {
  RepairId repair_id = 0;
  uint32_t attempts = 0;
  std::string scheme;
  std::string transport;
  std::string stripe_id;
  uint64_t block_bytes = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;           // verified and handed over, of all blocks together
  uint64_t bytes_received = 0;  // on the data plane, with frame headers
  double seconds = 0;
  double commit_seconds = 0;
  std::vector<std::string> sha256;  // of each block's bytes, where they were compared; else empty
  RepairCost cost;                  // of the plan that ran
  std::optional<ChecksumKind> checksum;  // that a survivor's store keeps, if it does
};

// Told once, on the caller's thread, when helpers run the plan and before the first byte: what is
// known of the repair by then.
using BegunFn = std::function<void(const RepairReport& report)>;

struct RequestorOptions {
  std::string coordinator;  // host:port
  std::string name;         // for logs and status; empty: host name and process id
  Duration call_timeout = std::chrono::seconds(15);  // of each call to the coordinator
  std::shared_ptr<TlsContext> tls;                   // who it is; null: plain text
  PartOptions part;
  // Of what all calls together receive of blocks; 0: no limit.
  double receive_bytes_per_second = 0;
  RepairWatch::Options watch;
  bool sha256_of_files = false;  // in the report, even where there is none to compare with
};

// Thread-safe: several repairs may run at once, each on its caller's thread.
class Requestor {
 public:
  // Checks the options; the coordinator is dialled when it is first needed.
  static absl::StatusOr<std::unique_ptr<Requestor>> Connect(RequestorOptions options);
  // The same with a given way to the coordinator, and to the helpers (null: over TCP).
  Requestor(std::unique_ptr<CoordinatorApi> coordinator, RequestorOptions options,
            std::unique_ptr<Transport> tcp = nullptr);
  ~Requestor();

  // Degraded read of one block: hands the target's bytes to `sink` in order, as they arrive.
  // Nothing unverified is ever handed over: after an error what was handed over before is what the
  // survivors give. A corrupt one of which neither checksums nor parity tell is found at the end of
  // a whole block: its bytes count when the call has succeeded. Blocks until the end.
  //
  // NOT_FOUND: the coordinator knows no such block. INVALID_ARGUMENT: blocks that are not of one
  // stripe, or more than the call takes; bad range, slice size, scheme or transport.
  // A node that fails, hangs, sends damaged bytes or is very slow is left out, and what is missing
  // is brought by others: another attempt, unseen but for `attempts` in the report.
  // DATA_LOSS: all bytes came, and they are not the block that the target or its manifest knows by
  // its SHA-256.
  // FAILED_PRECONDITION: too few survivors, each named with the reason. ABORTED: too many attempts.
  // UNAVAILABLE, DEADLINE_EXCEEDED: the coordinator does not answer. CANCELLED: by Cancel(). In all
  // these cases the call may be made again.
  absl::StatusOr<RepairReport> Read(const RepairTarget& target, const ByteSink& sink,
                                    const ProgressFn& progress = nullptr,
                                    const BegunFn& begun = nullptr);

  // Repair to disk: writes the bytes of each of the target's blocks into a temporary file beside
  // its path, and when all are there makes each durable and renames it. After an error a path has
  // its whole block, or there is no trace of it and an older file is untouched.
  absl::StatusOr<RepairReport> RepairToFiles(const RepairTarget& target,
                                             const std::vector<std::string>& paths,
                                             const ProgressFn& progress = nullptr);

  // Has the helpers of these nodes, one for each block, store the target's blocks, whole; the
  // catalog then names the new places. ABORTED: it failed there; the message has the reason, and
  // how many blocks were stored all the same. If the caller dies the repair goes on.
  absl::StatusOr<RepairReport> RepairToNodes(const RepairTarget& target,
                                             const std::vector<std::string>& nodes);

  // Ends the calls that are under way with CANCELLED. Any thread, also a signal-waiting one.
  void Cancel();

  // The coordinator, for what is no repair: plans, catalog, status.
  CoordinatorApi& coordinator() { return *coordinator_; }

 private:
  // A call under way. Cancel() may come before its part runs.
  struct Call {
    PartRunner* runner = nullptr;
    bool cancelled = false;
    // The slice in which the part's check rows were not zero.
    std::optional<uint32_t> corrupt_slice;
  };
  // Keeps a call among calls_.
  class Registration;

  struct Hooks {
    std::function<void(const RepairPart& part, const RepairReport& report)> begun;
    // When all bytes are there, for a last look at them. Sets `sha256` of the report.
    std::function<absl::Status(const RepairPart& part, RepairReport* report)> check;
  };
  absl::StatusOr<RepairReport> Run(const RepairTarget& target, RepairSink* sink,
                                   const Hooks& hooks);
  // `missing_bytes`: what each block lacks, from any thread.
  absl::Status RunPart(const RepairPart& part, SliceSink* sink, Call* call, RepairReport* report,
                       const std::function<uint64_t()>& missing_bytes);
  // The next attempt. Waits for a coordinator that does not answer.
  absl::StatusOr<GrantedRepair> Resume(const RepairTarget& target, const FailedAttempt& failed,
                                       const Call& call);
  // False when the call is cancelled.
  bool Pause(const Call& call, Duration pause);
  // After a parity check that did not hold: has this slice alone rebuilt with one more survivor, to
  // learn which block is corrupt. Returns `found`, with the block's name if it could be learnt.
  absl::Status LocateCorruptBlock(const RepairTarget& target, const RepairPart& part,
                                  const absl::Status& found, Call* call);
  // Until the coordinator says that the repair has ended. CANCELLED: by Cancel().
  absl::StatusOr<RepairStatus> AwaitEnd(RepairId repair_id, const Call& call);

  const std::unique_ptr<CoordinatorApi> coordinator_;
  const RequestorOptions options_;
  const std::unique_ptr<Transport> tcp_;
  const std::unique_ptr<Transport> redis_;
  RateLimiter receive_limiter_{&Clock::System()};

  Mutex mutex_;
  CondVar cancelled_;
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
