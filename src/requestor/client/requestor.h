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
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "net/tls/tls.h"
#include "net/transport.h"
#include "pipeline/part_runner.h"
#include "requestor/client/coordinator_api.h"
#include "requestor/client/repair_sink.h"
#include "requestor/client/repair_watch.h"

namespace ecpipe {

// The result of a repair, and its cost. `seconds` is the time from the call to the last verified
// byte, with the coordinator's planning and handing out; `commit_seconds` is the time after that in
// which files were made durable. If nodes store the blocks, `seconds` is the coordinator's measure,
// up to the last stored block.
struct RepairReport {
  RepairId repair_id = 0;
  uint32_t attempts = 0;
  std::string scheme;
  std::string transport;
  std::string stripe_id;
  uint64_t block_bytes = 0;             // length of the longest of the blocks
  std::vector<uint64_t> block_lengths;  // of each whole block
  uint64_t offset = 0;
  uint64_t bytes = 0;           // bytes verified and handed over, all blocks together
  uint64_t bytes_received = 0;  // on the data plane, with frame headers
  double seconds = 0;
  double commit_seconds = 0;
  std::vector<std::string> sha256;       // of the bytes of each block; empty if it was not computed
  PlanCost cost;                         // of the plan that ran
  std::optional<ChecksumKind> checksum;  // the checksums that a survivor's store keeps, if any
  // Sources of the target's facts whose replicas are known to be corrupt.
  std::vector<StripeFacts::Source> corrupt;
};

// Called on the caller's thread for each attempt, when helpers run its plan and before its first
// byte, with what is known of the repair by then.
using BegunFn = std::function<void(const RepairReport& report)>;

struct RequestorOptions {
  std::string coordinator;  // host:port
  std::string name;         // for logs and status; empty: host name and process id
  Duration call_timeout = std::chrono::seconds(15);  // of each call to the coordinator
  std::shared_ptr<TlsContext> tls;                   // its certificate; null: plain text
  std::string redis_password_file;                   // as in RedisOptions
  PartOptions part;
  // Of what all calls together receive of blocks; 0: no limit.
  double receive_bytes_per_second = 0;
  RepairWatch::Options watch;
  bool sha256_of_files = false;  // compute it for the report, even with nothing to compare it with
};

// Thread-safe: several repairs may run at once, each on its caller's thread. A call that is given a
// stop token ends with CANCELLED when that is asked to stop, as by Cancel().
class Requestor {
 public:
  // Checks the options; the coordinator is dialled when it is first needed.
  static absl::StatusOr<std::unique_ptr<Requestor>> Connect(RequestorOptions options);
  // The same with a given client of the coordinator and a given transport to helpers (null: TCP).
  Requestor(std::unique_ptr<CoordinatorApi> coordinator, RequestorOptions options,
            std::unique_ptr<Transport> tcp = nullptr);
  ~Requestor();

  // Degraded read of one block: hands the target's bytes to `sink` in order, as they arrive, and
  // blocks until the end. Only verified bytes are handed over, also before an error. One thing can
  // be noticed only at the end of a whole block: a corrupt survivor that neither checksums nor
  // parity can reveal. So use the bytes of a whole block only if the call succeeds.
  //
  // A node that fails, hangs, sends damaged bytes or is very slow is left out, and other nodes
  // bring the missing slices in another attempt; only `attempts` in the report shows that.
  //
  // NOT_FOUND: the coordinator does not know the block. INVALID_ARGUMENT: the blocks belong to
  // several stripes, or are more than the call takes; or the range, slice size, scheme or transport
  // is bad. DATA_LOSS: all bytes came, but their SHA-256 is not the one in the target or in the
  // manifest. FAILED_PRECONDITION: too few survivors; the message names each refused one with the
  // reason. ABORTED: 16 attempts in vain. UNAVAILABLE, DEADLINE_EXCEEDED: the coordinator does not
  // answer. CANCELLED: Cancel() was called. After any of these errors the call may be repeated.
  absl::StatusOr<RepairReport> Read(const RepairTarget& target, const ByteSink& sink,
                                    const ProgressFn& progress = nullptr,
                                    const BegunFn& begun = nullptr,
                                    const std::stop_token& stop = {});

  // The same for all blocks of the target at once; each survivor is read once. `sink` takes a piece
  // of every block at a time, so no block runs ahead of another, and at most one slice of each is
  // held. A block that ends within the range has zeros behind its end.
  absl::StatusOr<RepairReport> ReadSeveral(const RepairTarget& target, const PiecesSink& sink,
                                           const ProgressFn& progress = nullptr,
                                           const BegunFn& begun = nullptr,
                                           const std::stop_token& stop = {});

  // Repair to files: writes the bytes of each of the target's blocks to a temporary file beside its
  // path; when all blocks are complete, makes each file durable and renames it. A block that ends
  // within the range gives its file what it has of the range. After an error a path has either its
  // whole block, or what was there before. A path that leads to no file, such as a device or FIFO,
  // is written to when all is verified (AtomicFile).
  absl::StatusOr<RepairReport> RepairToFiles(const RepairTarget& target,
                                             const std::vector<std::string>& paths,
                                             const ProgressFn& progress = nullptr,
                                             const std::stop_token& stop = {});

  // Repair to nodes: the helpers of these nodes, one for each block, store the target's whole
  // blocks, and the catalog then has the new places. ABORTED: the repair failed; the message has
  // the reason, and how many blocks were stored nevertheless. If the caller dies, the repair goes
  // on.
  absl::StatusOr<RepairReport> RepairToNodes(const RepairTarget& target,
                                             const std::vector<std::string>& nodes,
                                             const std::stop_token& stop = {});

  // Ends all running calls with CANCELLED, and tells the coordinator why: DEADLINE_EXCEEDED counts
  // as a failure there. Any thread, also one that waits for signals.
  void Cancel(const absl::Status& why = absl::CancelledError("the requestor cancelled the repair"));

  // The coordinator, for all that is not a repair: plans, catalog, status.
  CoordinatorApi& coordinator() { return *coordinator_; }

 private:
  // A running call. Cancel() may come before its part runs.
  struct Call {
    PartRunner* runner = nullptr;  // guarded by mutex_
    std::stop_source given_up;
    absl::Status why;  // of Cancel(); guarded by mutex_
    // The slice in which the latest part's check rows were not zero.
    std::optional<uint32_t> corrupt_slice;
  };
  // Keeps a call among calls_.
  class Registration;
  // Has Cancel() find the call's runner.
  class Running;

  struct Hooks {
    std::function<void(const RepairPart& part, const RepairReport& report)> begun;
    // Called when all bytes have come, to check them. Sets `sha256` of the report. `given_up`: the
    // call is cancelled.
    std::function<absl::Status(const RepairPart& part, const std::stop_token& given_up,
                               RepairReport* report)>
        check;
  };
  absl::StatusOr<RepairReport> RepairToFilesOnce(const RepairTarget& target,
                                                 const std::vector<std::string>& paths,
                                                 const ProgressFn& progress,
                                                 const std::stop_token& stop);
  absl::StatusOr<RepairReport> Run(const RepairTarget& target, RepairSink* sink, const Hooks& hooks,
                                   const std::stop_token& stop);
  // `missing_bytes` says what each block lacks; called from any thread.
  absl::Status RunPart(const RepairPart& part, SliceSink* sink, Call* call, RepairReport* report,
                       const std::function<uint64_t()>& missing_bytes);
  // Gets the next attempt. Waits for a coordinator that does not answer.
  absl::StatusOr<RepairGrant> Resume(const RepairTarget& target, const ResumePoint& failed,
                                     const Call& call);
  void GiveUp(Call* call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns false if the call is cancelled.
  bool Pause(const Call& call, Duration pause);
  // After a parity check that did not hold: rebuilds this slice alone with one more survivor, to
  // learn which block is corrupt. Returns `found`, with the name of the block if it could be
  // learnt. CANCELLED: the call was cancelled.
  absl::Status LocateCorruptBlock(const RepairTarget& target, const RepairPart& part,
                                  const absl::Status& found, Call* call);
  // Waits until the coordinator says that the repair has ended. CANCELLED: the call was cancelled.
  absl::StatusOr<RepairRecord> AwaitEnd(RepairId repair_id, const Call& call);

  const std::unique_ptr<CoordinatorApi> coordinator_;
  const RequestorOptions options_;
  const std::unique_ptr<Transport> tcp_;
  const std::unique_ptr<Transport> redis_;
  // What a cancelled call ends with. Copying it takes no memory: GiveUp() runs in callbacks that
  // must not throw.
  const absl::Status cancelled_error_ = absl::CancelledError("the requestor cancelled the repair");
  RateLimiter receive_limiter_{&Clock::System()};

  Mutex mutex_;
  CondVar cancelled_;
  std::set<Call*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
