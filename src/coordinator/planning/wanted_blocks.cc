// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/wanted_blocks.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "model/plan/repair_plan.h"

namespace ecpipe {
namespace {

absl::Status CheckCount(const std::vector<std::string>& block_ids) {
  if (!block_ids.empty() && block_ids.size() <= kMaxRows) return absl::OkStatus();
  return absl::InvalidArgumentError("a request must name from 1 to " + std::to_string(kMaxRows) +
                                    " blocks, not " + std::to_string(block_ids.size()));
}

// Fills in the indices of these blocks.
absl::Status FindIn(const std::vector<std::string>& block_ids, WantedBlocks* wanted) {
  const std::vector<BlockPlace>& blocks = wanted->stripe.blocks;
  for (const std::string& id : block_ids) {
    const auto place = std::find_if(blocks.begin(), blocks.end(),
                                    [&](const BlockPlace& block) { return block.block_id == id; });
    if (place == blocks.end()) {
      const std::string other = id == block_ids[0] ? "" : ", as " + block_ids[0] + " is";
      return absl::InvalidArgumentError("block " + id + " is not of stripe " +
                                        wanted->stripe.stripe_id + other);
    }
    const int index = static_cast<int>(place - blocks.begin());
    if (absl::c_linear_search(wanted->indices, index)) {
      return absl::InvalidArgumentError("block " + id + " is named twice");
    }
    wanted->indices.push_back(index);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WantedBlocks> FindWanted(Catalog* catalog,
                                        const std::vector<std::string>& block_ids) {
  ECPIPE_RETURN_IF_ERROR(CheckCount(block_ids));
  ECPIPE_ASSIGN_OR_RETURN(BlockLocation first, catalog->FindBlock(block_ids[0]));
  WantedBlocks wanted{std::move(first.stripe), {}, {}};
  ECPIPE_RETURN_IF_ERROR(FindIn(block_ids, &wanted));
  return wanted;
}

absl::StatusOr<WantedBlocks> FindWanted(const StripeFacts& facts,
                                        const std::vector<std::string>& block_ids,
                                        NodeRegistry* nodes) {
  ECPIPE_RETURN_IF_ERROR(CheckCount(block_ids));
  ECPIPE_RETURN_IF_ERROR(Annotate(facts.Validate(), "the facts of the stripe"));
  WantedBlocks wanted;
  wanted.stripe.stripe_id = facts.stripe_id;
  wanted.stripe.code = facts.code;
  wanted.stripe.block_bytes = facts.LongestBlock();
  wanted.replicas.resize(facts.blocks.size());
  for (const StripeFacts::Source& source : facts.sources) {
    std::vector<std::string>& replicas = wanted.replicas[static_cast<size_t>(source.index)];
    std::vector<std::string> found = nodes->WithStorage(source.storage_id);
    // A colon is in no node's id.
    if (found.empty()) found.push_back("storage:" + source.storage_id);
    for (std::string& node : found) {
      if (!absl::c_linear_search(replicas, node)) replicas.push_back(std::move(node));
    }
  }
  for (size_t i = 0; i < facts.blocks.size(); ++i) {
    const std::vector<std::string>& replicas = wanted.replicas[i];
    wanted.stripe.blocks.push_back({facts.blocks[i].name, replicas.empty() ? "" : replicas[0]});
    wanted.stripe.block_lengths.push_back(facts.blocks[i].bytes);
  }
  ECPIPE_RETURN_IF_ERROR(FindIn(block_ids, &wanted));
  return wanted;
}

absl::Status CheckFacts(const StripeFacts& facts, CodeCache* codes) {
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError("the facts of stripe " + facts.stripe_id + ": " + what);
  };
  const absl::StatusOr<std::shared_ptr<const ErasureCode>> code = codes->Get(facts.code);
  if (!code.ok()) return bad(std::string(code.status().message()));
  if (static_cast<int>(facts.blocks.size()) != (*code)->n()) {
    return bad("there are " + std::to_string(facts.blocks.size()) + " blocks, but code " +
               (*code)->name() + " needs " + std::to_string((*code)->n()));
  }
  if ((*code)->layout().sub_blocks == 1) return absl::OkStatus();
  for (const StripeFacts::Block& block : facts.blocks) {
    if (block.bytes != facts.LongestBlock() || !(*code)->layout().Fits(block.bytes)) {
      return bad("code " + (*code)->name() + " needs blocks of one length, a multiple of " +
                 std::to_string((*code)->layout().group_bytes()) + " bytes");
    }
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
