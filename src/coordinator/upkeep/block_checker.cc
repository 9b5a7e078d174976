// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/block_checker.h"

#include "base/process/log.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// How soon a suspect is looked at. Repairs avoid it meanwhile.
constexpr Duration kLookEvery = std::chrono::milliseconds(200);

using Verdict = CorruptBlocks::Verdict;

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSound:
      return "sound";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kUndecided:
      return "undecided";
    case Verdict::kAskAgain:
      break;
  }
  return "asked again";
}

}  // namespace

BlockChecker::BlockChecker(CorruptBlocks* corrupt, NodeRegistry* nodes, Catalog* catalog,
                           const Clock* clock, Ask ask)
    : corrupt_(corrupt), nodes_(nodes), catalog_(catalog), clock_(clock), ask_(std::move(ask)) {}

BlockChecker::~BlockChecker() {
  stop_.request_stop();
  {
    MutexLock lock(&mutex_);
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void BlockChecker::Start() {
  thread_ = Thread([this] { Run(); });
}

void BlockChecker::Run() {
  while (!stop_.stop_requested()) {
    if (CheckNext()) continue;
    MutexLock lock(&mutex_);
    if (!stop_.stop_requested()) wake_.WaitUntil(lock, clock_->Now() + kLookEvery);
  }
}

bool BlockChecker::CheckNext() {
  const std::optional<CorruptBlocks::Due> due = corrupt_->NextCheck(clock_->Now());
  if (!due) return false;
  const Decision decision = Check(due->block);
  if (stop_.stop_requested()) return false;
  corrupt_->Decide(*due, decision.verdict, decision.why, clock_->Now());
  Log(decision.verdict == Verdict::kCorrupt ? LogLevel::kError : LogLevel::kInfo, "block.checked",
      {{"block", due->block.block_id},
       {"node", due->block.node},
       {"verdict", VerdictName(decision.verdict)},
       {"reason", decision.why}});
  return true;
}

absl::Status BlockChecker::CheckSoon(const std::string& block_id) {
  const absl::Status marked = corrupt_->CheckSoon(block_id, clock_->Now());
  if (!absl::IsNotFound(marked)) return marked;
  ECPIPE_ASSIGN_OR_RETURN(const BlockLocation place, catalog_->FindBlock(block_id));
  const std::string& node = place.stripe.blocks[static_cast<size_t>(place.block_index)].node;
  corrupt_->Add({.block_id = block_id,
                 .node = node,
                 .reason = "an operator has it checked",
                 .found_unix_ms = clock_->UnixMillis(),
                 .suspect = true,
                 .undecided = "",
                 .checks = 0});
  return absl::OkStatus();
}

std::optional<WholeBlock> BlockChecker::Expected(const CorruptBlock& block) {
  const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block.block_id);
  if (!place.ok()) return std::nullopt;
  const BlockPlace& known = place->stripe.blocks[static_cast<size_t>(place->block_index)];
  if (known.node != block.node) return std::nullopt;
  return WholeBlock{place->stripe.BytesOf(place->block_index), known.sha256, false};
}

BlockChecker::Decision BlockChecker::Check(const CorruptBlock& block) {
  const std::optional<NodeView> node = nodes_->Find(block.node);
  if (!node || node->state == NodeState::kDead) {
    return {Verdict::kAskAgain, "the helper of its node does not answer"};
  }
  return Judge(ask_({block.node, node->record.control_address}, block.block_id, stop_.get_token()),
               Expected(block));
}

BlockChecker::Decision BlockChecker::Judge(const absl::StatusOr<WholeBlock>& answer,
                                           const std::optional<WholeBlock>& expected) {
  if (absl::IsDataLoss(answer.status())) {
    return {Verdict::kCorrupt, std::string(answer.status().message())};
  }
  if (!answer.ok()) return {Verdict::kAskAgain, StatusText(answer.status())};
  if (expected && answer->bytes != expected->bytes) {
    return {Verdict::kCorrupt, "it has " + std::to_string(answer->bytes) + " bytes instead of " +
                                   std::to_string(expected->bytes)};
  }
  if (expected && !expected->sha256.empty()) {
    if (answer->sha256 == expected->sha256) return {Verdict::kSound, "it has its SHA-256"};
    return {Verdict::kCorrupt,
            "it has SHA-256 " + answer->sha256 + ", but the catalog " + expected->sha256};
  }
  if (answer->has_checksums) return {Verdict::kSound, "it matches its checksums"};
  return {Verdict::kUndecided,
          "neither its store nor the catalog has a checksum of it; a repair that stores it anew "
          "with --verify parity ends the doubt"};
}

}  // namespace ecpipe
