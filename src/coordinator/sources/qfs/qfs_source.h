// SPDX-License-Identifier: Apache-2.0
// What the coordinator knows of QFS: which chunks form a stripe and where they are, from the
// metaserver, when somebody asks; and from the reports of helpers what each chunkserver has.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "coordinator/cluster/corrupt_blocks.h"
#include "coordinator/cluster/node_registry.h"
#include "coordinator/sources/qfs/metaserver_client.h"
#include "coordinator/sources/stripe_source.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {

struct QfsOptions {
  std::vector<std::string> metaservers;  // host:port of their client ports, asked in turn
  // A request waits so long for the metaserver: less than a requestor waits for its answer.
  Duration timeout = std::chrono::seconds(4);
  // Answers are used again for so long. Where chunks are may be out of date by that; a repair that
  // relies on it reads no wrong bytes, since helpers check what they open.
  Duration fresh = std::chrono::seconds(2);
};

// Thread-safe.
class QfsSource : public StripeSource {
 public:
  // Groups that are remembered; each takes some kilobytes.
  static constexpr size_t kMaxKnown = 1024;
  // Questions under way; those beyond wait, so that a storm of repairs does not become one of
  // connections.
  static constexpr int kMaxAsking = 16;
  // Those that wait; further ones fail, because each holds a thread of the coordinator.
  static constexpr int kMaxWaiting = 64;

  // All outlive the source.
  QfsSource(NodeRegistry* nodes, CorruptBlocks* corrupt, QfsOptions options, const Clock* clock,
            const ReportedBlocks::Limits& limits = {})
      : nodes_(nodes),
        corrupt_(corrupt),
        options_(std::move(options)),
        clock_(clock),
        reported_(limits) {}

  std::string system() const override { return "qfs"; }
  std::optional<std::string> BlockNamed(const std::string& text) const override;
  bool HasNode(const std::string& storage_id) const override { return IsQfsStorageId(storage_id); }
  // The claim is that of QfsPlace.
  absl::StatusOr<StripeFacts> FactsOf(const std::string& block_id,
                                      const std::string& claim) override;
  absl::StatusOr<StripedFile> FileAt(const std::string& path, uint64_t offset) override;
  absl::StatusOr<ReportedBlocks::Outcome> Record(BlockReport report) override;
  std::optional<SourceStatus> Overview() override;
  SystemNode NodeOf(const NodeView& node) override;
  // What helpers have reported.
  ReportedBlocks* reported() { return &reported_; }
  // By reports alone: a lost chunk is rebuilt when another live node reports it. What stripes the
  // outstanding ones are of is not asked, so they count as of unknown stripes.
  absl::StatusOr<NodeLoss> LossOf(const NodeView& node,
                                  const std::set<std::string>& running) override;

 private:
  // A chunk with its stripe, as the metaserver told it.
  struct Known {
    QfsPlace place;
    StripeFacts facts;
    TimePoint as_of{};
  };
  struct Live {
    std::vector<std::shared_ptr<const NodeBlocks>> blocks;
    double oldest_seconds = 0;
    uint64_t unreported = 0;  // nodes
  };

  template <typename Answer>
  using AskFn = std::function<absl::StatusOr<Answer>(MetaServerClient* client)>;

  // Runs `ask` over a connection to the metaserver that answered last, then to the others in turn.
  // UNAVAILABLE: none has answered in time.
  template <typename Answer>
  absl::StatusOr<Answer> Asked(const AskFn<Answer>& ask);
  // The same from the metaserver at `*server` on; sets it to the one that has answered.
  template <typename Answer>
  absl::StatusOr<Answer> AskedInTurn(const AskFn<Answer>& ask, TimePoint deadline,
                                     size_t* server) const;
  void Remember(const std::string& block_id, const Known& known);
  bool Reports(const NodeView& node) const;
  Live LiveBlocks();
  SourceFacts Facts();

  NodeRegistry* const nodes_;
  CorruptBlocks* const corrupt_;
  const QfsOptions options_;
  const Clock* const clock_;
  ReportedBlocks reported_;

  Mutex mutex_;
  CondVar asked_;
  int asking_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t first_ ABSL_GUARDED_BY(mutex_) = 0;                    // the metaserver that answered last
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);  // by block
  std::optional<TimePoint> answered_ ABSL_GUARDED_BY(mutex_);   // the last time
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
};

// The stripe of a chunk at this place, from the metaserver's list of its group's chunks.
// UNAVAILABLE: the list does not have the chunk as `place` has it, so the file was changed between
// two answers. FAILED_PRECONDITION: the list lacks chunks that are not known to
// be zeros. Pure.
absl::StatusOr<StripeFacts> QfsFacts(const QfsPlace& place,
                                     const std::vector<QfsLayoutChunk>& layout);

}  // namespace ecpipe
