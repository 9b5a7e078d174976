// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/node_commands.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/bytes/size_text.h"
#include "base/status.h"
#include "requestor/cli/progress_text.h"
#include "requestor/cli/table.h"
#include "requestor/cli/terminal.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// What a person can do with them is the same for more.
constexpr size_t kMostNamed = 10'000;
// That one call is to remove: the blocks are read first, and a call reads for a few seconds.
constexpr size_t kCopiesAtOnce = 100;

struct Count {
  uint64_t copies = 0;
  uint64_t bytes = 0;

  void Add(const ExtraCopyView& copy) {
    ++copies;
    bytes += copy.bytes;
  }
  std::string Text() const {
    return absl::StrFormat("%d %s, %s", copies, copies == 1 ? "copy" : "copies", FormatSize(bytes));
  }
};

struct Cleaning {
  Count removed;  // or those that would be
  Count kept;
  uint64_t undecided = 0;            // of those kept: a helper did not answer, or failed
  std::vector<ExtraCopyView> named;  // the first kMostNamed
};

void AddTo(Cleaning* cleaning, std::vector<ExtraCopyView> copies) {
  for (ExtraCopyView& copy : copies) {
    (copy.kept_because.empty() ? cleaning->removed : cleaning->kept).Add(copy);
    cleaning->undecided += copy.ask_again ? 1 : 0;
    if (cleaning->named.size() < kMostNamed) cleaning->named.push_back(std::move(copy));
  }
}

void KeepYoungOnes(double least_age_seconds, std::vector<ExtraCopyView>* copies) {
  for (ExtraCopyView& copy : *copies) {
    const bool may_go = copy.kept_because.empty() || copy.ask_again;
    if (!may_go || copy.age_seconds >= least_age_seconds) continue;
    copy.kept_because = "it is only " + DurationText(copy.age_seconds) + " old; --older-than 0s";
    copy.ask_again = false;
  }
}

// Removes those of a page that may be removed. Helpers do in a few seconds what they can, so the
// others are asked for again while that gets on.
absl::Status RemovePage(CatalogApi* catalog, const std::string& node,
                        std::vector<ExtraCopyView> page, Cleaning* cleaning) {
  const auto may_go = [](const ExtraCopyView& copy) {
    return copy.kept_because.empty() || copy.ask_again;
  };
  const auto kept = std::stable_partition(page.begin(), page.end(), may_go);
  AddTo(cleaning, {kept, page.end()});
  page.erase(kept, page.end());
  while (!page.empty()) {
    std::vector<ExtraCopyView> open;
    for (size_t begin = 0; begin < page.size(); begin += kCopiesAtOnce) {
      const size_t end = std::min(page.size(), begin + kCopiesAtOnce);
      ECPIPE_ASSIGN_OR_RETURN(
          std::vector<ExtraCopyView> answers,
          catalog->RemoveExtraCopies(node, {page.begin() + static_cast<ptrdiff_t>(begin),
                                            page.begin() + static_cast<ptrdiff_t>(end)}));
      const auto decided = std::stable_partition(answers.begin(), answers.end(),
                                                 [](const auto& copy) { return copy.ask_again; });
      open.insert(open.end(), answers.begin(), decided);
      AddTo(cleaning, {decided, answers.end()});
    }
    const bool stuck = open.size() == page.size();
    page = std::move(open);
    if (stuck) break;
  }
  AddTo(cleaning, std::move(page));
  return absl::OkStatus();
}

std::string Outcome(const ExtraCopyView& copy, bool dry_run) {
  if (copy.kept_because.empty()) return dry_run ? "would be removed" : "removed";
  return (dry_run ? "would stay: " : "stays: ") + copy.kept_because;
}

void Print(const CommonArguments& common, const CleanArguments& arguments,
           const Cleaning& cleaning) {
  if (common.json) {
    Json copies = Json::array();
    for (const ExtraCopyView& copy : cleaning.named) {
      copies.push_back({{"block_id", copy.block_id},
                        {"bytes", copy.bytes},
                        {"holder", copy.holder},
                        {"age_seconds", copy.age_seconds},
                        {"kept_because", copy.kept_because}});
    }
    const Json json{{"node_id", arguments.node},
                    {"dry_run", arguments.dry_run},
                    {"removed", cleaning.removed.copies},
                    {"removed_bytes", cleaning.removed.bytes},
                    {"kept", cleaning.kept.copies},
                    {"kept_bytes", cleaning.kept.bytes},
                    {"undecided", cleaning.undecided},
                    {"copies", copies},
                    {"copies_beyond_these",
                     cleaning.removed.copies + cleaning.kept.copies - cleaning.named.size()}};
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  Table table({{"block", Table::Align::kLeft, /*shrinks=*/true},
               {"size", Table::Align::kRight},
               {"is on", Table::Align::kLeft, /*shrinks=*/true},
               {"outcome", Table::Align::kLeft, /*shrinks=*/true, 1}});
  for (const ExtraCopyView& copy : cleaning.named) {
    table.Add({{copy.block_id},
               {FormatSize(copy.bytes)},
               {copy.holder.empty() ? "-" : copy.holder},
               {Outcome(copy, arguments.dry_run)}});
  }
  if (!cleaning.named.empty()) PrintTable(table);
  std::printf("%s: %s %s; %s\n", arguments.node.c_str(), cleaning.removed.Text().c_str(),
              arguments.dry_run ? "would be removed" : "removed",
              cleaning.kept.copies == 0 ? "nothing else is extra"
                                        : ("kept " + cleaning.kept.Text()).c_str());
}

}  // namespace

absl::Status RunForgetNode(const CommonArguments& common, const ForgetNodeArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
  if (arguments.dry_run) {
    return PrintEffects(common, catalog->WouldForget(arguments.node, arguments.force));
  }
  ECPIPE_RETURN_IF_ERROR(catalog->ForgetNode(arguments.node, arguments.force));
  if (common.json) {
    std::printf("%s\n", Json{{"node_id", arguments.node}, {"forgotten", true}}.dump().c_str());
  } else {
    std::printf("%s is forgotten\n", arguments.node.c_str());
  }
  return absl::OkStatus();
}

absl::Status RunClean(const CommonArguments& common, const CleanArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CatalogApi> catalog, ConnectCatalog(common));
  Cleaning cleaning;
  std::string page;
  do {
    ECPIPE_ASSIGN_OR_RETURN(CatalogApi::ExtraCopyPage listed,
                            catalog->ExtraCopies(arguments.node, page));
    KeepYoungOnes(arguments.least_age_seconds, &listed.copies);
    if (arguments.dry_run) {
      AddTo(&cleaning, std::move(listed.copies));
    } else {
      const absl::Status removed =
          RemovePage(catalog.get(), arguments.node, std::move(listed.copies), &cleaning);
      if (!removed.ok()) {
        return Annotate(removed, "after " + cleaning.removed.Text() + " that were removed");
      }
    }
    page = listed.next;
  } while (!page.empty());
  Print(common, arguments, cleaning);
  if (cleaning.undecided == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "of %d copies it is not known whether they may go, or they could not be removed; call "
      "this again, or see `ecpipe nodes`",
      cleaning.undecided));
}

absl::Status RunMaintain(const CommonArguments& common, const MaintainArguments& arguments) {
  const std::string& node = arguments.node;
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CatalogApi> catalog, ConnectCatalog(common));
  if (arguments.dry_run) {
    return PrintEffects(common, catalog->WouldMaintain(node, arguments.seconds));
  }
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t id, catalog->MaintainNode(node, arguments.seconds));
  if (common.json) {
    const Json json{{"node_id", node}, {"recovery_id", id}, {"seconds", arguments.seconds}};
    std::printf("%s\n", json.dump().c_str());
  } else {
    std::printf(
        "%s may be away for %s and takes no blocks; to end this before: ecpipe nodes readmit "
        "%s\n",
        node.c_str(), DurationText(arguments.seconds).c_str(), node.c_str());
  }
  return absl::OkStatus();
}

absl::Status RunReadmit(const CommonArguments& common, const ReadmitArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CatalogApi> catalog, ConnectCatalog(common));
  if (arguments.dry_run) return PrintEffects(common, catalog->WouldReadmit(arguments.node));
  ECPIPE_RETURN_IF_ERROR(catalog->ReadmitNode(arguments.node));
  if (common.json) {
    std::printf("%s\n", Json{{"node_id", arguments.node}, {"readmitted", true}}.dump().c_str());
  } else {
    std::printf("%s takes blocks again\n", arguments.node.c_str());
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
