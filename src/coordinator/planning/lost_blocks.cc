// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/lost_blocks.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "codec/hdfs_names.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {
namespace {

absl::Status CheckCount(const std::vector<std::string>& block_ids) {
  if (!block_ids.empty() && block_ids.size() <= kMaxRows) return absl::OkStatus();
  return absl::InvalidArgumentError("a request must name from 1 to " + std::to_string(kMaxRows) +
                                    " blocks, not " + std::to_string(block_ids.size()));
}

// Fills in the indices of these blocks.
absl::Status FindIn(const std::vector<std::string>& block_ids, LostBlocks* lost) {
  const std::vector<BlockPlace>& blocks = lost->stripe.blocks;
  for (const std::string& id : block_ids) {
    const auto place = std::find_if(blocks.begin(), blocks.end(),
                                    [&](const BlockPlace& block) { return block.block_id == id; });
    if (place == blocks.end()) {
      const std::string other = id == block_ids[0] ? "" : ", as " + block_ids[0] + " is";
      return absl::InvalidArgumentError("block " + id + " is not of stripe " +
                                        lost->stripe.stripe_id + other);
    }
    const int index = static_cast<int>(place - blocks.begin());
    if (absl::c_linear_search(lost->indices, index)) {
      return absl::InvalidArgumentError("block " + id + " is named twice");
    }
    lost->indices.push_back(index);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LostBlocks> FindLost(Catalog* catalog, const std::vector<std::string>& block_ids) {
  ECPIPE_RETURN_IF_ERROR(CheckCount(block_ids));
  ECPIPE_ASSIGN_OR_RETURN(BlockLocation first, catalog->FindBlock(block_ids[0]));
  LostBlocks lost{std::move(first.stripe), {}, {}};
  ECPIPE_RETURN_IF_ERROR(FindIn(block_ids, &lost));
  return lost;
}

absl::StatusOr<LostBlocks> FindLost(const StripeFacts& facts,
                                    const std::vector<std::string>& block_ids,
                                    NodeRegistry* nodes) {
  ECPIPE_RETURN_IF_ERROR(CheckCount(block_ids));
  ECPIPE_RETURN_IF_ERROR(Annotate(facts.Validate(), "the facts of the stripe"));
  LostBlocks lost;
  lost.stripe.stripe_id = facts.StripeId();
  ECPIPE_ASSIGN_OR_RETURN(lost.stripe.code, NameOfHdfsCodec(facts.codec, facts.data, facts.parity));
  lost.stripe.block_bytes = facts.BlockBytes(0);
  lost.replicas.resize(static_cast<size_t>(facts.blocks()));
  for (const StripeFacts::Source& source : facts.sources) {
    std::vector<std::string>& replicas = lost.replicas[static_cast<size_t>(source.index)];
    std::vector<std::string> found = nodes->WithStorage(source.storage_id);
    // A colon is in no node's id.
    if (found.empty()) found.push_back("datanode:" + source.storage_id);
    for (std::string& node : found) {
      if (!absl::c_linear_search(replicas, node)) replicas.push_back(std::move(node));
    }
  }
  for (int i = 0; i < facts.blocks(); ++i) {
    const std::vector<std::string>& replicas = lost.replicas[static_cast<size_t>(i)];
    lost.stripe.blocks.push_back({facts.BlockName(i), replicas.empty() ? "" : replicas[0]});
    lost.stripe.block_lengths.push_back(facts.BlockBytes(i));
  }
  ECPIPE_RETURN_IF_ERROR(FindIn(block_ids, &lost));
  return lost;
}

}  // namespace ecpipe
