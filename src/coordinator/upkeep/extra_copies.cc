// SPDX-License-Identifier: Apache-2.0
#include "coordinator/upkeep/extra_copies.h"

#include <optional>
#include <set>
#include <utility>

#include "base/status.h"

namespace ecpipe {
namespace {

// With the helpers of holders.
constexpr Duration kFindPatience = std::chrono::seconds(3);

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
        {catalog_, &repairs_->nodes(), &repairs_->corrupt(), helpers_, kFindPatience});
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

absl::StatusOr<std::vector<ExtraCopy>> ExtraCopies::Remove(const std::string& node,
                                                           const std::vector<BlockFile>& files) {
  ECPIPE_ASSIGN_OR_RETURN(const HelperAddress helper, HelperOf(node));
  std::vector<ExtraCopy> answers;
  for (const BlockFile& file : files) {
    answers.push_back(
        {.file = file, .holder = node, .kept_because = "by the catalog it is in its place"});
  }
  std::vector<BlockFile> chosen;
  std::vector<size_t> numbers;
  for (Judged& judged : Judge(node, files)) {
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
