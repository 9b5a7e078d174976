// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "base/bytes/size_text.h"
#include "base/bytes/utf8_text.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/progress.h"
#include "requestor/client/coordinator_client.h"
#include "requestor/files/manifest.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

Json StripeJson(const Stripe& stripe) {
  Json json{{"stripe_id", stripe.stripe_id},
            {"code", stripe.code},
            {"block_bytes", stripe.block_bytes},
            {"blocks", Json::array()}};
  for (const BlockPlace& block : stripe.blocks) {
    json["blocks"].push_back({{"block_id", block.block_id}, {"node", block.node}});
  }
  return json;
}

Stripe StripeOf(const Manifest& manifest, const ManifestStripe& listed) {
  Stripe stripe{listed.stripe_id, manifest.code, manifest.block_bytes, {}, {}};
  for (const ManifestBlock& block : listed.blocks) {
    stripe.blocks.push_back({block.block_id, block.node, block.sha256});
  }
  return stripe;
}

std::vector<Stripe> StripesOf(const Manifest& manifest) {
  std::vector<Stripe> stripes;
  for (const ManifestStripe& stripe : manifest.stripes) {
    stripes.push_back(StripeOf(manifest, stripe));
  }
  return stripes;
}

// The number of stripes that were loaded.
absl::StatusOr<size_t> LoadManifests(const CommonArguments& common,
                                     const std::vector<std::string>& paths) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ProgressDisplay display({.unit = "stripes", .style = ProgressStyleOf(common)});
  size_t loaded = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(paths[i]));
    const std::vector<Stripe> stripes = StripesOf(manifest);
    const bool only = paths.size() == 1;
    display.Begin((only ? "" : absl::StrFormat("%zu/%zu ", i + 1, paths.size())) + manifest.name);
    display.Show({.done = 0, .total = stripes.size()});
    ECPIPE_RETURN_IF_ERROR(
        Annotate(coordinator->PutStripes(stripes, display.Callback()), paths[i]));
    loaded += stripes.size();
  }
  return loaded;
}

// What loading each of them alone would do.
absl::StatusOr<CatalogApi::PutCounts> WouldLoad(const CommonArguments& common,
                                                const std::vector<std::string>& paths) {
  ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
  CatalogApi::PutCounts all;
  for (const std::string& path : paths) {
    ECPIPE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(path));
    const absl::StatusOr<CatalogApi::PutCounts> counts = catalog->TryPut(StripesOf(manifest));
    if (!counts.ok()) return Annotate(counts.status(), path);
    all.added += counts->added;
    all.replaced += counts->replaced;
    all.unchanged += counts->unchanged;
  }
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorApi>> ConnectCoordinator(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::shared_ptr<TlsContext> tls,
                          TlsContext::CreateIfEnabled(common.tls));
  return MakeCoordinatorClient(common.coordinator, FromSeconds(common.timeout_s), tls);
}

absl::Status RunCatalogLoad(const CommonArguments& common, const CatalogLoadArguments& arguments) {
  if (arguments.dry_run) {
    ECPIPE_ASSIGN_OR_RETURN(const CatalogApi::PutCounts would,
                            WouldLoad(common, arguments.manifests));
    return PrintPutCounts(common, would);
  }
  ECPIPE_ASSIGN_OR_RETURN(const size_t loaded, LoadManifests(common, arguments.manifests));
  if (common.json) {
    std::printf("%s\n", Json{{"loaded_stripes", loaded}}.dump().c_str());
  } else {
    std::printf("loaded %zu stripes\n", loaded);
  }
  return absl::OkStatus();
}

absl::Status RunCatalogList(const CommonArguments& common, const std::string& after,
                            uint32_t limit) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const ListedStripes listed, coordinator->ListStripes(after, limit));
  if (common.json) {
    Json json = Json::array();
    for (const Stripe& stripe : listed.stripes) json.push_back(StripeJson(stripe));
    std::printf("%s\n", json.dump(2).c_str());
    return CheckUndamaged(listed);
  }
  for (const Stripe& stripe : listed.stripes) {
    std::printf("%s  %s  %s a block\n", CleanText(stripe.stripe_id).c_str(),
                CleanText(stripe.code).c_str(), FormatSize(stripe.block_bytes).c_str());
  }
  return CheckUndamaged(listed);
}

absl::Status RunCatalogLocate(const CommonArguments& common, const std::string& block_id) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const auto located, coordinator->LocateBlock(block_id));
  const auto& [stripe, block_index] = located;
  if (common.json) {
    Json json = StripeJson(stripe);
    json["block_index"] = block_index;
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  // A catalog may be older than the check of what comes into it.
  std::printf("%s is block %d of stripe %s, %s, %s a block\n", CleanText(block_id).c_str(),
              block_index, CleanText(stripe.stripe_id).c_str(), CleanText(stripe.code).c_str(),
              FormatSize(stripe.block_bytes).c_str());
  for (size_t i = 0; i < stripe.blocks.size(); ++i) {
    std::printf("  %3zu  %-16s %s%s\n", i, CleanText(stripe.blocks[i].node).c_str(),
                CleanText(stripe.blocks[i].block_id).c_str(),
                static_cast<int>(i) == block_index ? "  <--" : "");
  }
  return absl::OkStatus();
}

absl::Status RunSchemes(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<SchemeInfo> schemes, coordinator->Schemes());
  std::fputs((common.json ? SchemesJson(schemes) : SchemesText(schemes)).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace ecpipe
