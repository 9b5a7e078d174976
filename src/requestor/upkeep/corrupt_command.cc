// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/corrupt_command.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "requestor/upkeep/marks_text.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// As long as the coordinator waits for a helper that reads a block.
constexpr Duration kCheckPatience = std::chrono::minutes(10);
constexpr Duration kAskEvery = std::chrono::milliseconds(200);

// Waits for the check. Nothing: the block has no mark any more.
absl::StatusOr<std::optional<CorruptBlockStatus>> AwaitCheck(CoordinatorApi* coordinator,
                                                             const std::string& block_id,
                                                             uint32_t checks_before) {
  const Clock& clock = Clock::System();
  const TimePoint give_up = clock.Now() + kCheckPatience;
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(const std::vector<CorruptBlockStatus> blocks,
                            coordinator->CorruptBlocks());
    const auto block = std::find_if(blocks.begin(), blocks.end(),
                                    [&](const auto& known) { return known.block_id == block_id; });
    if (block == blocks.end()) return std::nullopt;
    if (block->checks > checks_before) return *block;
    if (clock.Now() > give_up) {
      return absl::DeadlineExceededError("the check of block " + block_id + " goes on");
    }
    std::this_thread::sleep_for(kAskEvery);  // sleep-ok: a person waits for a disk to be read
  }
}

}  // namespace

absl::Status RunCorruptList(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<CorruptBlockStatus> blocks,
                          coordinator->CorruptBlocks());
  if (common.json) {
    Json json = Json::array();
    for (const CorruptBlockStatus& block : blocks) json.push_back(MarkAsJson(block));
    std::printf("%s\n", json.dump(2).c_str());
  } else if (blocks.empty()) {
    std::printf("no block is known or called corrupt\n");
  } else {
    std::fputs(MarksAsText(blocks).c_str(), stdout);
  }
  return absl::OkStatus();
}

absl::Status RunClearCorrupt(const CommonArguments& common,
                             const ClearCorruptArguments& arguments) {
  const std::string& block_id = arguments.block_id;
  if (arguments.dry_run) {
    ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
    return PrintEffects(common, catalog->WouldClear(block_id));
  }
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_RETURN_IF_ERROR(coordinator->ClearCorruptBlock(block_id));
  if (common.json) {
    std::printf("%s\n", Json{{"block_id", block_id}, {"cleared", true}}.dump(2).c_str());
  } else {
    std::printf("%s: repairs read it again\n", block_id.c_str());
  }
  return absl::OkStatus();
}

absl::Status RunCheckCorrupt(const CommonArguments& common, const std::string& block_id) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<CorruptBlockStatus> before,
                          coordinator->CorruptBlocks());
  uint32_t checks = 0;
  for (const CorruptBlockStatus& block : before) {
    if (block.block_id == block_id) checks = block.checks;
  }
  ECPIPE_RETURN_IF_ERROR(coordinator->CheckCorruptBlock(block_id));
  ECPIPE_ASSIGN_OR_RETURN(const std::optional<CorruptBlockStatus> left,
                          AwaitCheck(coordinator.get(), block_id, checks));
  const std::string verdict = !left ? "sound" : left->suspect ? "undecided" : "corrupt";
  const std::string why = !left ? "" : left->suspect ? left->undecided : left->reason;
  if (common.json) {
    const Json json{{"block_id", block_id}, {"verdict", verdict}, {"reason", why}};
    std::printf("%s\n", json.dump(2).c_str());
  } else {
    std::printf("%s: %s%s\n", block_id.c_str(), verdict.c_str(),
                why.empty() ? "" : (": " + why).c_str());
  }
  if (!left) return absl::OkStatus();
  return absl::DataLossError("block " + block_id + " is " +
                             (left->suspect ? "not proved sound" : "corrupt"));
}

}  // namespace ecpipe
