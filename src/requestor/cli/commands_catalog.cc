// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/terminal.h"
#include "requestor/files/catalog_lines.h"
#include "requestor/files/catalog_reader.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kStripesInPage = 1000;
// What a person can do with them is the same for more, such as those of a whole node.
constexpr size_t kMostNamed = 10'000;
constexpr size_t kMostNamedStripes = 100;  // damaged ones, in an error

// Hands over all stripes, page after page. DATA_LOSS: the catalog has more, which are damaged.
absl::Status ForEachPage(CoordinatorApi* coordinator,
                         const std::function<absl::Status(const std::vector<Stripe>&)>& take) {
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus before, coordinator->Status());
  std::string after;
  uint64_t listed = 0;
  ListedStripes damaged;  // of all pages
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(ListedStripes page, coordinator->ListStripes(after, kStripesInPage));
    damaged.damaged_count += page.damaged_count;
    for (std::string& id : page.damaged) {
      if (damaged.damaged.size() < kMostNamedStripes) damaged.damaged.push_back(std::move(id));
    }
    if (page.stripes.empty()) break;
    listed += page.stripes.size();
    ECPIPE_RETURN_IF_ERROR(take(page.stripes));
    after = page.stripes.back().stripe_id;
  }
  ECPIPE_RETURN_IF_ERROR(CheckUndamaged(damaged));
  // Others may have added or removed some meanwhile.
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus now, coordinator->Status());
  const uint64_t least = std::min(before.stripe_count, now.stripe_count);
  if (listed >= least) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "the catalog has %d stripes but lists %d; the others are damaged, or were removed meanwhile: "
      "the coordinator's log names those that are damaged; import or remove them, then ask again",
      least, listed));
}

// What helpers count beyond the blocks that the catalog has on their nodes.
std::map<std::string, uint64_t> ExtraBlocks(const ClusterStatus& status,
                                            const std::map<std::string, uint64_t>& known) {
  std::map<std::string, uint64_t> extra;
  for (const NodeStatus& node : status.nodes) {
    if (node.state == "dead" || node.counting || !node.storage_id.empty()) continue;
    const auto found = known.find(node.node);
    const uint64_t of_catalog = found == known.end() ? 0 : found->second;
    if (node.block_count > of_catalog) extra[node.node] = node.block_count - of_catalog;
  }
  return extra;
}

struct CatalogCheck {
  Verification sum;    // names the first kMostNamed that are wrong
  size_t unnamed = 0;  // wrong ones beyond these
  size_t not_asked = 0;
  std::map<std::string, uint64_t> extra;
  absl::Status complete;  // DATA_LOSS: there are damaged stripes, whose blocks are not looked for
};

void AddTo(CatalogCheck* check, Verification page) {
  check->sum.all += page.all;
  check->sum.verified += page.verified;
  for (BlockCheck& wrong : page.wrong) {
    check->not_asked += wrong.verdict == BlockVerdict::kNotAsked ? 1 : 0;
    if (check->sum.wrong.size() < kMostNamed) {
      check->sum.wrong.push_back(std::move(wrong));
    } else {
      ++check->unnamed;
    }
  }
}

// Finds files of wrong blocks on other nodes. What a node does not say stays unknown.
void FindElsewhere(CatalogApi* catalog, const ClusterStatus& status,
                   std::vector<BlockCheck>* wrong) {
  std::map<std::string, BlockCheck*> sought;
  for (BlockCheck& check : *wrong) {
    if (check.verdict != BlockVerdict::kNotAsked) sought[check.block_id] = &check;
  }
  if (sought.empty()) return;
  for (const NodeStatus& node : status.nodes) {
    if (node.state != "live" || !node.storage_id.empty()) continue;
    std::string from;
    do {
      const absl::StatusOr<CatalogApi::ExtraCopyPage> page = catalog->ExtraCopies(node.node, from);
      if (!page.ok()) break;
      for (const ExtraCopyView& copy : page->copies) {
        const auto found = sought.find(copy.block_id);
        if (found != sought.end()) found->second->also_on.push_back(node.node);
      }
      from = page->next;
    } while (!from.empty());
  }
}

std::string DetailOf(const BlockCheck& check) {
  if (check.also_on.empty()) return check.detail;
  return check.detail + (check.detail.empty() ? "" : "; ") + "a file of it is on " +
         absl::StrJoin(check.also_on, ", ");
}

absl::StatusOr<CatalogCheck> CheckCatalog(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const auto coordinator, ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
  ECPIPE_ASSIGN_OR_RETURN(const ClusterStatus status, coordinator->Status());
  ProgressDisplay display({.label = "check", .unit = "stripes", .style = ProgressStyleOf(common)});
  CatalogCheck check;
  std::map<std::string, uint64_t> known;  // blocks that a helper has, by node
  uint64_t stripes = 0;
  check.complete = ForEachPage(coordinator.get(), [&](const std::vector<Stripe>& page) {
    std::vector<std::string> blocks;
    for (const Stripe& stripe : page) {
      for (const BlockPlace& place : stripe.blocks) blocks.push_back(place.block_id);
    }
    absl::StatusOr<std::vector<BlockCheck>> checked = VerifyBlocks(catalog.get(), blocks, {});
    if (!checked.ok()) return checked.status();
    for (const BlockCheck& block : *checked) {
      if (block.verdict != BlockVerdict::kMissing) ++known[block.node];
    }
    AddTo(&check, SumOf(*std::move(checked)));
    stripes += page.size();
    display.Show({.done = stripes, .total = status.stripe_count});
    return absl::OkStatus();
  });
  if (!check.complete.ok() && !absl::IsDataLoss(check.complete)) return check.complete;
  check.extra = ExtraBlocks(status, known);
  FindElsewhere(catalog.get(), status, &check.sum.wrong);
  return check;
}

void PrintCheck(const CommonArguments& common, const CatalogCheck& check) {
  if (common.json) {
    const Json json{{"blocks", check.sum.all},
                    {"verified", check.sum.verified},
                    {"wrong", WrongBlocksJson(check.sum.wrong)},
                    {"wrong_beyond_these", check.unnamed},
                    {"extra", check.extra}};
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  if (!check.sum.wrong.empty()) PrintTable(WrongBlocks(check.sum.wrong));
  if (check.unnamed > 0) std::printf("and %zu others\n", check.unnamed);
  for (const auto& [node, blocks] : check.extra) {
    std::printf("%s: %llu files that the catalog does not have there\n", node.c_str(),
                static_cast<unsigned long long>(blocks));
  }
  std::printf("%s\n", check.sum.Text().c_str());
}

// What importing the file would do. Any error of any line comes to light here, before the first
// stripe is put.
absl::StatusOr<CatalogApi::PutCounts> TryFile(CatalogApi* catalog, const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(CatalogReader reader, CatalogReader::Open(path));
  CatalogNames names;
  CatalogApi::PutCounts all;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<Stripe> stripes, reader.NextStripes(kStripesInPage));
    if (stripes.empty()) break;
    for (const Stripe& stripe : stripes) names.Add(stripe);
    const absl::StatusOr<CatalogApi::PutCounts> counts = catalog->TryPut(stripes);
    if (!counts.ok()) {
      return Annotate(counts.status(), absl::StrFormat("the last %d stripes up to %s",
                                                       stripes.size(), reader.Where()));
    }
    all.added += counts->added;
    all.replaced += counts->replaced;
    all.unchanged += counts->unchanged;
  }
  ECPIPE_RETURN_IF_ERROR(names.CheckOnce(path));
  return all;
}

}  // namespace

absl::Status CheckUndamaged(const ListedStripes& listed) {
  if (listed.damaged_count == 0) return absl::OkStatus();
  const uint64_t others = listed.damaged_count - listed.damaged.size();
  return absl::DataLossError(absl::StrFormat(
      "%d %s of the catalog cannot be read: %s%s; import or remove what is damaged, then ask again",
      listed.damaged_count, listed.damaged_count == 1 ? "stripe" : "stripes",
      absl::StrJoin(listed.damaged, ", "),
      others > 0 ? absl::StrFormat(" and %d others", others) : ""));
}

absl::Status PrintPutCounts(const CommonArguments& common, const CatalogApi::PutCounts& counts) {
  return PrintEffects(common, std::vector<std::string>{absl::StrFormat(
                                  "would add %d stripes, replace %d, and leave %d as they are",
                                  counts.added, counts.replaced, counts.unchanged)});
}

absl::StatusOr<std::unique_ptr<CatalogApi>> ConnectCatalog(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  return CatalogApi::Connect(common.coordinator, FromSeconds(common.timeout_s), tls);
}

absl::Status PrintEffects(const CommonArguments& common, const CatalogApi::Effects& effects) {
  ECPIPE_RETURN_IF_ERROR(effects.status());
  if (common.json) {
    std::printf("%s\n", Json{{"dry_run", true}, {"effects", *effects}}.dump(2).c_str());
    return absl::OkStatus();
  }
  for (const std::string& effect : *effects) std::printf("%s\n", effect.c_str());
  return absl::OkStatus();
}

Table WrongBlocks(const std::vector<BlockCheck>& wrong) {
  Table table({{"block", Table::Align::kLeft, /*shrinks=*/true},
               {"node", Table::Align::kLeft, /*shrinks=*/true},
               {"found"},
               {"detail", Table::Align::kLeft, /*shrinks=*/true, 1}});
  for (const BlockCheck& check : wrong) {
    table.Add({{check.block_id},
               {check.node.empty() ? "-" : check.node},
               {BlockVerdictName(check.verdict), Tint::kBad},
               {DetailOf(check)}});
  }
  return table;
}

Json WrongBlocksJson(const std::vector<BlockCheck>& wrong) {
  Json json = Json::array();
  for (const BlockCheck& check : wrong) {
    json.push_back({{"block_id", check.block_id},
                    {"node", check.node},
                    {"verdict", BlockVerdictName(check.verdict)},
                    {"detail", check.detail},
                    {"also_on", check.also_on}});
  }
  return json;
}

absl::Status RunCatalogExport(const CommonArguments& common, const std::string& file) {
  ECPIPE_ASSIGN_OR_RETURN(const auto coordinator, ConnectCoordinator(common));
  std::optional<AtomicFile> output;
  if (file != "-") {
    ECPIPE_ASSIGN_OR_RETURN(AtomicFile created, AtomicFile::Create(file));
    output.emplace(std::move(created));
  }
  uint64_t bytes = 0;
  uint64_t stripes = 0;
  ECPIPE_RETURN_IF_ERROR(ForEachPage(coordinator.get(), [&](const std::vector<Stripe>& page) {
    std::string text;
    for (const Stripe& stripe : page) text += CatalogLine(stripe) + "\n";
    stripes += page.size();
    if (!output) {
      const bool put = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
      return put ? absl::OkStatus() : absl::DataLossError("cannot write to standard output");
    }
    const std::span data(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    const absl::Status written = output->WriteAt(bytes, data);
    bytes += text.size();
    return written;
  }));
  if (!output) return absl::OkStatus();
  ECPIPE_RETURN_IF_ERROR(output->Commit());
  if (common.json) {
    std::printf("%s\n", Json{{"stripes", stripes}, {"bytes", bytes}}.dump().c_str());
  } else {
    std::printf("wrote %llu stripes to %s\n", static_cast<unsigned long long>(stripes),
                file.c_str());
  }
  return absl::OkStatus();
}

absl::Status RunCatalogImport(const CommonArguments& common,
                              const CatalogImportArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const auto coordinator, ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
  const absl::StatusOr<CatalogApi::PutCounts> would = TryFile(catalog.get(), arguments.file);
  if (!would.ok()) return Annotate(would.status(), "nothing was imported");
  if (arguments.dry_run) return PrintPutCounts(common, *would);
  ECPIPE_ASSIGN_OR_RETURN(CatalogReader reader, CatalogReader::Open(arguments.file));
  uint64_t imported = 0;
  while (true) {
    const absl::StatusOr<std::vector<Stripe>> stripes = reader.NextStripes(kStripesInPage);
    absl::Status status = stripes.status();
    if (status.ok() && stripes->empty()) break;
    if (status.ok()) status = coordinator->PutStripes(*stripes, nullptr);
    if (!status.ok()) {
      return Annotate(status, absl::StrFormat("after %d stripes that were imported; to import the "
                                              "file again does no harm",
                                              imported));
    }
    imported += stripes->size();
  }
  if (common.json) {
    std::printf("%s\n", Json{{"imported_stripes", imported}}.dump().c_str());
  } else {
    std::printf("imported %llu stripes\n", static_cast<unsigned long long>(imported));
  }
  return absl::OkStatus();
}

absl::Status RunCatalogRemove(const CommonArguments& common,
                              const CatalogRemoveArguments& arguments) {
  ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
  if (arguments.dry_run) return PrintEffects(common, catalog->WouldRemove(arguments.stripes));
  ECPIPE_RETURN_IF_ERROR(catalog->RemoveStripes(arguments.stripes));
  if (common.json) {
    std::printf("%s\n", Json{{"removed_stripes", arguments.stripes}}.dump().c_str());
  } else {
    std::printf("removed %zu stripes; their blocks stay on their nodes\n",
                arguments.stripes.size());
  }
  return absl::OkStatus();
}

absl::Status RunCatalogCheck(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const CatalogCheck check, CheckCatalog(common));
  PrintCheck(common, check);
  ECPIPE_RETURN_IF_ERROR(check.complete);
  const size_t bad = check.sum.wrong.size() + check.unnamed - check.not_asked;
  if (bad > 0) {
    return absl::DataLossError(absl::StrFormat("%d blocks are not as the catalog has them", bad));
  }
  if (check.not_asked == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("of %d blocks nobody knows; see `ecpipe nodes`", check.not_asked));
}

}  // namespace ecpipe
