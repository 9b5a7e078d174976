// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/extra_copies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "base/process/log.h"
#include "base/side_by_side.h"
#include "base/status.h"
#include "coordinator/upkeep/block_checker.h"

namespace ecpipe {
namespace {

// With the helpers of holders.
constexpr Duration kFindPatience = std::chrono::seconds(3);

// Holders that read at the same time. Each keeps a thread here, and its own disk busy.
constexpr size_t kHoldersAtOnce = 8;

// Why the copy of the block's holder does not count; empty: it does.
std::string WhyNotThere(const CheckedBlock& block) {
  const std::string detail = block.detail.empty() ? "" : ": " + block.detail;
  switch (block.presence) {
    case Presence::kThere:
      return "";
    case Presence::kMissing:
      return block.node + " does not have it" + detail;
    case Presence::kWrongLength:
      return block.node + " has it with another length" + detail;
    case Presence::kUnreadable:
      return block.node + " cannot read it" + detail;
    case Presence::kNotAsked:
      return block.node + " does not say whether it has it" + detail;
    case Presence::kUnknown:
      return "the catalog does not have it";
    case Presence::kCorrupt:
      return "it is corrupt on " + block.node + detail;
  }
  return "nobody knows whether " + block.node + " has it";
}

// What was found at the copy's holder of now. It may have another one since.
void AddFinding(const ExtraCopies::Comparison& comparison, ExtraCopy* copy) {
  const auto found = comparison.find(copy->file.block_id);
  if (found == comparison.end() || found->second.holder != copy->holder) {
    copy->kept_because = "there was no time to read it on " + copy->holder;
    copy->ask_again = true;
    return;
  }
  copy->kept_because = found->second.kept_because;
  copy->ask_again = found->second.ask_again;
}

}  // namespace

absl::StatusOr<HelperAddress> ExtraCopies::HelperOf(const std::string& node) {
  const std::optional<NodeView> view = repairs_->nodes().Find(node);
  if (!view) return absl::NotFoundError("node " + node + " is not known");
  if (!view->record.storage_id.empty()) {
    return absl::FailedPreconditionError(
        "node " + node + " belongs to a storage system, which removes its blocks itself");
  }
  if (view->state == NodeState::kDead) {
    return absl::FailedPreconditionError("node " + node + " is dead; start its helper first");
  }
  return HelperAddress{node, view->record.control_address};
}

// The order counts. `files` were seen before this: a repair that stores such a block later makes
// another file of it, which is not removed. One that had stored it by then runs until the catalog
// says that the block is here, so it runs now, or the catalog says so when it is asked next.
std::vector<ExtraCopies::Judged> ExtraCopies::Judge(const std::string& node,
                                                    const std::vector<BlockFile>& files) {
  const std::set<std::string> repaired = repairs_->RunningBlocks();
  std::vector<Judged> extra;
  std::vector<std::string> wanted;  // whose holders are asked
  std::vector<size_t> asked;        // numbers in `extra`
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& block_id = files[i].block_id;
    const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block_id);
    ExtraCopy copy{.file = files[i]};
    if (place.ok()) {
      copy.holder = place->stripe.blocks[static_cast<size_t>(place->block_index)].node;
    }
    if (copy.holder == node) continue;
    if (absl::IsNotFound(place.status())) {
      copy.kept_because = "the catalog does not have it";
    } else if (!place.ok()) {
      copy.kept_because = std::string(place.status().message());
    } else if (repaired.contains(block_id)) {
      copy.kept_because = "it is being repaired";
    } else if (const std::string doubt = repairs_->corrupt().Suspicion(block_id, copy.holder);
               !doubt.empty()) {
      copy.kept_because = "on " + copy.holder + " it is suspect: " + doubt;
    } else {
      asked.push_back(extra.size());
      wanted.push_back(block_id);
    }
    extra.push_back({i, std::move(copy)});
  }
  // Each has one answer, though a block may have several files.
  for (size_t begin = 0; begin < wanted.size(); begin += kMaxCopies) {
    const size_t end = std::min(wanted.size(), begin + kMaxCopies);
    const std::vector<CheckedBlock> checked = CheckPresence(
        {wanted.begin() + static_cast<ptrdiff_t>(begin),
         wanted.begin() + static_cast<ptrdiff_t>(end)},
        {catalog_, &repairs_->nodes(), &repairs_->corrupt(), helpers_, clock_, kFindPatience});
    for (size_t i = begin; i < end; ++i) {
      const CheckedBlock& block = checked[i - begin];
      ExtraCopy& copy = extra[asked[i]].copy;
      copy.ask_again = block.presence == Presence::kNotAsked;
      copy.kept_because =
          block.node == copy.holder ? WhyNotThere(block) : "the catalog has changed just now";
    }
  }
  return extra;
}

absl::StatusOr<ExtraCopies::Page> ExtraCopies::List(const std::string& node,
                                                    const std::string& page) {
  ECPIPE_ASSIGN_OR_RETURN(const HelperAddress helper, HelperOf(node));
  const absl::StatusOr<BlockFileGateway::Files> answer = files_->ListBlockFiles(helper, page);
  // Not to be taken for the coordinator's own.
  if (absl::IsUnimplemented(answer.status())) {
    return absl::FailedPreconditionError("node " + node +
                                         " lists no files, perhaps since its helper is too old: " +
                                         std::string(answer.status().message()));
  }
  ECPIPE_ASSIGN_OR_RETURN(const BlockFileGateway::Files listed, answer);
  Page result;
  for (Judged& judged : Judge(node, listed.files)) result.copies.push_back(std::move(judged.copy));
  if (listed.more && !listed.files.empty()) result.next = listed.files.back().block_id;
  return result;
}

ExtraCopies::Compared ExtraCopies::CompareWithOwn(const HelperAddress& node,
                                                  const std::string& block_id,
                                                  const WholeBlock& at_holder, Compared compared) {
  const absl::StatusOr<WholeBlock> own = [&] {
    MutexLock lock(&own_turn_);
    return files_->CheckBlock(node, block_id, stop_.get_token());
  }();
  // Of two copies of the same bytes one may go, whatever they are.
  if (own.ok() && own->sha256 == at_holder.sha256) return compared;
  if (own.ok()) {
    compared.kept_because = "the copy on " + compared.holder +
                            " has other bytes, and the catalog has no SHA-256 to tell which is bad";
  } else if (!absl::IsDataLoss(own.status())) {
    compared.kept_because = "it cannot be compared with the copy on " + compared.holder + ": " +
                            StatusText(own.status());
    compared.ask_again = true;
  } else if (!at_holder.has_checksums) {
    compared.kept_because =
        "neither it nor the copy on " + compared.holder + " is known to be good";
  }
  return compared;
}

// The BlockChecker reads it again, and decides. Repairs avoid it meanwhile.
void ExtraCopies::Suspect(const std::string& block_id, const std::string& holder,
                          const std::string& reason) {
  const bool news = repairs_->corrupt().Add({.block_id = block_id,
                                             .node = holder,
                                             .reason = reason,
                                             .found_unix_ms = clock_->UnixMillis(),
                                             .suspect = true,
                                             .undecided = "",
                                             .checks = 0});
  if (!news) return;
  Log(LogLevel::kWarning, "block.suspect",
      {{"block", block_id}, {"node", holder}, {"reason", reason}});
}

ExtraCopies::Compared ExtraCopies::CompareOne(const HelperAddress& node,
                                              const std::string& block_id,
                                              const std::string& holder) {
  Compared compared{.holder = holder, .kept_because = "", .ask_again = false};
  const absl::StatusOr<BlockLocation> place = catalog_->FindBlock(block_id);
  const std::optional<NodeView> view = repairs_->nodes().Find(holder);
  if (!place.ok() || !view || view->state == NodeState::kDead) {
    compared.kept_because = "it could not be read on " + holder;
    compared.ask_again = true;
    return compared;
  }
  const BlockPlace& known = place->stripe.blocks[static_cast<size_t>(place->block_index)];
  const absl::StatusOr<WholeBlock> read =
      files_->CheckBlock({holder, view->record.control_address}, block_id, stop_.get_token());
  const BlockChecker::Decision decision = BlockChecker::Judge(
      read, WholeBlock{place->stripe.BytesOf(place->block_index), known.sha256, false});
  switch (decision.verdict) {
    case CorruptBlocks::Verdict::kCorrupt:
      compared.kept_because = "it is corrupt on " + holder + ": " + decision.why;
      Suspect(block_id, holder, decision.why);
      return compared;
    case CorruptBlocks::Verdict::kAskAgain:
      compared.kept_because = holder + " could not read it: " + decision.why;
      compared.ask_again = true;
      return compared;
    case CorruptBlocks::Verdict::kSound:
    case CorruptBlocks::Verdict::kUndecided:
      break;
  }
  if (!known.sha256.empty()) return compared;
  return CompareWithOwn(node, block_id, *read, std::move(compared));
}

absl::StatusOr<ExtraCopies::Comparison> ExtraCopies::Compare(const std::string& node,
                                                             const std::vector<BlockFile>& files,
                                                             const std::function<bool()>& gone) {
  ECPIPE_ASSIGN_OR_RETURN(const HelperAddress helper, HelperOf(node));
  const TimePoint enough = clock_->Now() + kCompareFor;
  std::map<std::string, std::set<std::string>> of_holders;
  for (const Judged& judged : Judge(node, files)) {
    if (!judged.copy.kept_because.empty()) continue;
    of_holders[judged.copy.holder].insert(judged.copy.file.block_id);
  }
  const std::vector<std::pair<std::string, std::set<std::string>>> holders(of_holders.begin(),
                                                                           of_holders.end());
  Mutex mutex;
  Comparison comparison;
  SideBySide(holders.size(), kHoldersAtOnce, [&](size_t i) {
    const auto& [holder, block_ids] = holders[i];
    for (const std::string& block_id : block_ids) {
      if (clock_->Now() >= enough || gone() || stop_.stop_requested()) return;
      Compared compared = CompareOne(helper, block_id, holder);
      MutexLock lock(&mutex);
      comparison.insert_or_assign(block_id, std::move(compared));
    }
  });
  return comparison;
}

absl::StatusOr<std::vector<ExtraCopy>> ExtraCopies::Remove(const std::string& node,
                                                           const std::vector<BlockFile>& files,
                                                           const Comparison& comparison) {
  ECPIPE_ASSIGN_OR_RETURN(const HelperAddress helper, HelperOf(node));
  std::vector<ExtraCopy> answers;
  for (const BlockFile& file : files) {
    answers.push_back(
        {.file = file, .holder = node, .kept_because = "by the catalog it is in its place"});
  }
  std::vector<BlockFile> chosen;
  std::vector<size_t> numbers;
  for (Judged& judged : Judge(node, files)) {
    if (judged.copy.kept_because.empty()) AddFinding(comparison, &judged.copy);
    if (judged.copy.kept_because.empty()) {
      chosen.push_back(judged.copy.file);
      numbers.push_back(judged.number);
    }
    answers[judged.number] = std::move(judged.copy);
  }
  if (chosen.empty()) return answers;
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<absl::Status> outcomes,
                          files_->RemoveBlockFiles(helper, chosen));
  for (size_t i = 0; i < numbers.size(); ++i) {
    ExtraCopy& answer = answers[numbers[i]];
    const absl::Status outcome =
        i < outcomes.size() ? outcomes[i] : absl::UnavailableError("the helper has had no time");
    answer.kept_because = outcome.ok() ? "" : std::string(outcome.message());
    answer.ask_again =
        !outcome.ok() && !absl::IsNotFound(outcome) && !absl::IsFailedPrecondition(outcome);
  }
  return answers;
}

}  // namespace ecpipe
