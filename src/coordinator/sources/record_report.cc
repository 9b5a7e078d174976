// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/record_report.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"

namespace ecpipe {
namespace {

// What a file's age, in a report, may be wrong by on its way here.
constexpr int64_t kReportDelayMillis = 2000;

// The ids of those of `corrupt` whose files on the reporting node have changed since they were
// found corrupt.
std::vector<std::string> RenewedBlocks(const BlockReport& report,
                                       const std::vector<CorruptBlock>& corrupt,
                                       int64_t now_unix_ms, const ReportedNameOf& name_of) {
  std::vector<std::string> renewed;
  for (const CorruptBlock& block : corrupt) {
    const std::optional<ReportedName> name = name_of(block.block_id);
    if (block.node != report.node || !name) continue;
    const auto pool = report.pools.find(name->pool);
    if (pool == report.pools.end()) continue;
    for (const BlockChanges::Added& added : pool->second.added) {
      if (added.block.id != name->id) continue;
      const auto age = static_cast<int64_t>(std::min<uint64_t>(added.age_ms, INT64_MAX / 2));
      if (now_unix_ms - age - kReportDelayMillis > block.found_unix_ms) {
        renewed.push_back(block.block_id);
      }
    }
  }
  return renewed;
}

}  // namespace

absl::StatusOr<ReportedBlocks::Outcome> RecordReport(BlockReport report,
                                                     const ReportKeepers& keepers,
                                                     const Clock& clock,
                                                     const ReportedNameOf& name_of) {
  const std::string name = report.node;
  const std::optional<NodeView> node = keepers.nodes->Find(name);
  if (!node || node->record.incarnation != report.incarnation) {
    return absl::NotFoundError(
        "node " + name +
        " is not registered with this incarnation; register it, then report its blocks");
  }
  const std::vector<std::string> renewed =
      RenewedBlocks(report, keepers.corrupt->All(), clock.UnixMillis(), name_of);
  ECPIPE_ASSIGN_OR_RETURN(const ReportedBlocks::Outcome outcome,
                          keepers.reported->Record(std::move(report), clock.Now()));
  if (outcome != ReportedBlocks::Outcome::kTaken) return outcome;
  for (const std::string& block_id : renewed) keepers.corrupt->Forget(block_id, name);
  const std::shared_ptr<const NodeBlocks> has = keepers.reported->Of(name);
  for (const CorruptBlock& corrupt : keepers.corrupt->All()) {
    const std::optional<ReportedName> block = name_of(corrupt.block_id);
    if (corrupt.node != name || !block) continue;
    const InternalBlock* const found = FindBlockIn(*has, block->pool, block->id);
    if (found == nullptr || found->stamp != block->stamp) {
      keepers.corrupt->Forget(corrupt.block_id, name);
    }
  }
  return outcome;
}

}  // namespace ecpipe
