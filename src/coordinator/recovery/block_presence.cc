// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/block_presence.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

// The question to one helper, and which of the blocks it is about.
struct Asked {
  HelperGateway::BlockQuestion question;
  std::vector<size_t> blocks;
  std::vector<HelperGateway::FoundBlock> expected;  // of each
};

void Judge(const absl::StatusOr<HelperGateway::FoundBlock>& answer,
           const HelperGateway::FoundBlock& expected, CheckedBlock* block) {
  if (!answer.ok()) {
    // A directory that hangs, or has failed, may have the block all the same.
    block->presence = absl::IsNotFound(answer.status())      ? Presence::kMissing
                      : absl::IsUnavailable(answer.status()) ? Presence::kNotAsked
                                                             : Presence::kUnreadable;
    block->detail = std::string(answer.status().message());
    return;
  }
  if (answer->bytes != expected.bytes) {
    block->presence = Presence::kWrongLength;
    block->detail = "it has " + std::to_string(answer->bytes) + " bytes instead of " +
                    std::to_string(expected.bytes);
    return;
  }
  const absl::Status same = CheckStoredAs(block->block_id, answer->sha256, expected.sha256);
  block->presence = same.ok() ? Presence::kThere : Presence::kCorrupt;
  block->detail = std::string(same.message());
}

// Finds the block in the catalog and its helper among the nodes, if they are there.
void Prepare(const PresenceCheck& check, size_t number, CheckedBlock* block,
             std::map<std::string, Asked>* asked) {
  const absl::StatusOr<BlockLocation> place = check.catalog->FindBlock(block->block_id);
  if (!place.ok()) {
    const bool unknown = absl::IsNotFound(place.status());
    block->presence = unknown ? Presence::kUnknown : Presence::kUnreadable;
    block->detail = std::string(place.status().message());
    return;
  }
  const BlockPlace& known = place->stripe.blocks[static_cast<size_t>(place->block_index)];
  block->node = known.node;
  const std::string corrupt = check.corrupt->Reason(block->block_id, block->node);
  if (!corrupt.empty()) {
    block->presence = Presence::kCorrupt;
    block->detail = corrupt;
    return;
  }
  const std::optional<NodeView> node = check.nodes->Find(block->node);
  if (!node || node->state == NodeState::kDead) {
    block->detail = node ? "the node is dead" : "the node has not registered";
    return;
  }
  Asked& helper = (*asked)[block->node];
  helper.question.helper = {block->node, node->record.control_address};
  helper.question.block_ids.push_back(block->block_id);
  helper.blocks.push_back(number);
  helper.expected.push_back({place->stripe.BytesOf(place->block_index), known.sha256});
}

// It may be loaded anew meanwhile: the check reads the block and compares it with what the catalog
// has then.
void MarkSuspect(const PresenceCheck& check, const CheckedBlock& block) {
  check.corrupt->Add({.block_id = block.block_id,
                      .node = block.node,
                      .reason = block.detail,
                      .found_unix_ms = check.clock->UnixMillis(),
                      .suspect = true,
                      .undecided = "",
                      .checks = 0});
}

}  // namespace

std::vector<CheckedBlock> CheckPresence(const std::vector<std::string>& block_ids,
                                        const PresenceCheck& check) {
  ECPIPE_CHECK(block_ids.size() <= HelperGateway::kMaxBlocksInQuestion);
  std::vector<CheckedBlock> checked(block_ids.size());
  std::map<std::string, Asked> asked;  // by node
  for (size_t i = 0; i < block_ids.size(); ++i) {
    checked[i].block_id = block_ids[i];
    Prepare(check, i, &checked[i], &asked);
  }
  std::vector<HelperGateway::BlockQuestion> questions;
  for (const auto& [node, helper] : asked) questions.push_back(helper.question);
  if (questions.empty()) return checked;
  const auto answers = check.helpers->FindBlocks(questions, check.patience);
  size_t next = 0;
  for (const auto& [node, helper] : asked) {
    const absl::StatusOr<HelperGateway::FoundBlocks>& answer = answers[next++];
    for (size_t i = 0; i < helper.blocks.size(); ++i) {
      CheckedBlock& block = checked[helper.blocks[i]];
      if (!answer.ok()) {
        block.detail = StatusText(answer.status());
      } else if (i >= answer->size()) {
        block.detail = "the helper has had no time to look for it";
      } else {
        Judge((*answer)[i], helper.expected[i], &block);
        if (block.presence == Presence::kCorrupt) MarkSuspect(check, block);
      }
    }
  }
  return checked;
}

}  // namespace ecpipe
