// SPDX-License-Identifier: Apache-2.0
#include "coordinator/recovery/loss_finder.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/status.h"
#include "model/corrupt_block.h"

namespace ecpipe {
namespace {

// A directory that does not answer may have the block.
bool CannotTell(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
}

// A block of another time under the same name is not the one that was lost.
bool IsWanted(const HelperGateway::FoundBlock& found, const std::string& block_id,
              const LossFinder::Page& page) {
  const auto expected = page.sha256.find(block_id);
  return expected == page.sha256.end() ||
         CheckStoredAs(block_id, found.sha256, expected->second).ok();
}

}  // namespace

absl::StatusOr<LossFinder::Page> LossFinder::List(const std::string& node,
                                                  const std::string& page) {
  ECPIPE_ASSIGN_OR_RETURN(NodeBlockPage listed, catalog_->ListNode(node, page, kStripesInPage));
  Page found;
  found.next = std::move(listed.next);
  for (const NodeBlock& on_node : listed.blocks) {
    LostBlock& block = found.lost.emplace_back();
    block.block_id = on_node.block_id;
    // The repair of a block whose stripe makes no sense fails, and says why.
    if (!on_node.stripe.ok()) continue;
    block.bytes = on_node.stripe->block_bytes;
    const auto code = codes_.Get(on_node.stripe->code);
    if (code.ok()) block.needed = (*code)->k();
    block.holders = HoldersOf(*on_node.stripe, block.block_id);
    for (const BlockPlace& place : on_node.stripe->blocks) {
      if (place.block_id == block.block_id && !place.sha256.empty()) {
        found.sha256[block.block_id] = place.sha256;
      }
    }
  }
  return found;
}

std::vector<std::string> LossFinder::HoldersOf(const Stripe& stripe, const std::string& block_id) {
  std::vector<std::string> holders;
  for (const BlockPlace& other : stripe.blocks) {
    if (other.block_id != block_id) holders.push_back(other.node);
  }
  return holders;
}

absl::Status LossFinder::Compare(const HelperAddress& helper, NoAnswer no_answer, Page* page) {
  std::vector<bool> there;
  while (there.size() < page->lost.size()) {
    HelperGateway::BlockQuestion question{helper, {}};
    const size_t end =
        std::min(page->lost.size(), there.size() + HelperGateway::kMaxBlocksInQuestion);
    for (size_t i = there.size(); i < end; ++i) {
      question.block_ids.push_back(page->lost[i].block_id);
    }
    ECPIPE_ASSIGN_OR_RETURN(const HelperGateway::FoundBlocks found,
                            std::move(helpers_->FindBlocks({question}, kPatience).at(0)));
    if (found.empty()) return absl::UnavailableError("node " + helper.node + " gave no answer");
    for (const absl::StatusOr<HelperGateway::FoundBlock>& answer : found) {
      if (CannotTell(answer.status()) && no_answer == NoAnswer::kIsAnError) {
        return Annotate(answer.status(), "node " + helper.node);
      }
      const LostBlock& block = page->lost[there.size()];
      // Of a stripe that makes no sense the length is not known.
      there.push_back(answer.ok() && (block.bytes == 0 || answer->bytes == block.bytes) &&
                      IsWanted(*answer, block.block_id, *page));
    }
  }
  std::vector<LostBlock> lost;
  for (size_t i = 0; i < there.size(); ++i) {
    (there[i] ? page->there : lost).push_back(std::move(page->lost[i]));
  }
  page->lost = std::move(lost);
  return absl::OkStatus();
}

std::optional<std::string> LossFinder::LostForGood(const std::string& block_id, OwnNode own_node) {
  const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block_id);
  if (!place.ok()) return std::nullopt;
  const absl::StatusOr<std::shared_ptr<const ErasureCode>> code = codes_.Get(place->stripe.code);
  if (!code.ok() || place->stripe.blocks.size() != static_cast<size_t>((*code)->n())) {
    return std::nullopt;
  }
  std::vector<HelperGateway::BlockQuestion> questions;
  std::vector<int> asked;     // block indices
  std::vector<int> possible;  // that some node has, or may have
  for (int i = 0; i < (*code)->n(); ++i) {
    if (i == place->block_index && own_node == OwnNode::kHasLostIt) continue;
    const BlockPlace& block = place->stripe.blocks[static_cast<size_t>(i)];
    const std::optional<NodeView> node = nodes_->Find(block.node);
    if (node && node->state == NodeState::kLive) {
      questions.push_back({{block.node, node->record.control_address}, {block.block_id}});
      asked.push_back(i);
    } else {
      possible.push_back(i);
    }
  }
  // Nodes that are away are reason enough, and what they have nobody can say.
  if (static_cast<int>(questions.size()) < (*code)->k()) return std::nullopt;
  const auto answers = helpers_->FindBlocks(questions, kPatience);
  std::string gone;
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool denied =
        answers[i].ok() && !answers[i]->empty() && absl::IsNotFound(answers[i]->front().status());
    if (denied) {
      gone += "; " + questions[i].block_ids[0] + " on " + questions[i].helper.node + ": " +
              std::string(answers[i]->front().status().message());
    } else {
      possible.push_back(asked[i]);
    }
  }
  // It need not be rebuilt.
  if (absl::c_linear_search(possible, place->block_index)) return std::nullopt;
  const int failed[] = {place->block_index};
  if (!absl::IsFailedPrecondition((*code)->Equation(failed, possible).status())) {
    return std::nullopt;
  }
  std::vector<std::string> names;
  for (const int index : possible) {
    names.push_back(place->stripe.blocks[static_cast<size_t>(index)].block_id);
  }
  return "block " + block_id + " is lost: " + WhyUndetermined(**code, names) + gone;
}

}  // namespace ecpipe
