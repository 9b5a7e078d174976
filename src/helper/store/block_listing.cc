// SPDX-License-Identifier: Apache-2.0
#include "helper/store/block_listing.h"

#include <algorithm>
#include <utility>

namespace ecpipe {
namespace {

BlockChanges ChangesOfPool(const std::vector<ListedBlock>& before,
                           const std::vector<ListedBlock>& after, int64_t now_unix_ns) {
  constexpr int64_t kNanosOfMilli = 1'000'000;
  BlockChanges changes;
  auto old = before.begin();
  for (const ListedBlock& listed : after) {
    for (; old != before.end() && old->block.id < listed.block.id; ++old) {
      changes.removed.push_back(old->block.id);
    }
    const bool known = old != before.end() && old->block.id == listed.block.id;
    const bool same = known && *old == listed;
    if (known) ++old;
    if (same) continue;
    const int64_t age = std::max<int64_t>(0, now_unix_ns - listed.changed_unix_ns);
    changes.added.push_back({listed.block, static_cast<uint64_t>(age / kNanosOfMilli)});
  }
  for (; old != before.end(); ++old) changes.removed.push_back(old->block.id);
  return changes;
}

}  // namespace

std::map<std::string, BlockChanges> ChangesBetween(const BlockListing& before,
                                                   const BlockListing& after, int64_t now_unix_ns) {
  static const std::vector<ListedBlock> none;
  std::map<std::string, BlockChanges> all;
  const auto add = [&](const std::string& pool, const std::vector<ListedBlock>& old_blocks,
                       const std::vector<ListedBlock>& new_blocks) {
    BlockChanges changes = ChangesOfPool(old_blocks, new_blocks, now_unix_ns);
    if (changes != BlockChanges()) all[pool] = std::move(changes);
  };
  for (const auto& [pool, blocks] : after) {
    const auto old = before.find(pool);
    add(pool, old == before.end() ? none : old->second, blocks);
  }
  for (const auto& [pool, blocks] : before) {
    if (!after.contains(pool)) add(pool, blocks, none);
  }
  return all;
}

}  // namespace ecpipe
