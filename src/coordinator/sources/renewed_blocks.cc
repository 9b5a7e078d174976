// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/renewed_blocks.h"

#include <algorithm>

namespace ecpipe {
namespace {

// What a file's age, in a report, may be wrong by on its way here.
constexpr int64_t kReportDelayMillis = 2000;

}  // namespace

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

}  // namespace ecpipe
