// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/kept_out_commands.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "requestor/cli/progress_text.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

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
