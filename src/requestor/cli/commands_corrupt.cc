// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/commands.h"

#include <CLI/CLI.hpp>
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
#include "model/systems/hdfs_block.h"
#include "requestor/cli/marks_text.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

// As long as the coordinator waits for a helper that reads a block.
constexpr Duration kCheckPatience = std::chrono::minutes(10);
constexpr Duration kAskEvery = std::chrono::milliseconds(200);

absl::Status RunList(const CommonArguments& common) {
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

absl::Status RunClear(const CommonArguments& common, const std::string& block_id) {
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

absl::Status RunCheck(const CommonArguments& common, const std::string& block_id) {
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

}  // namespace

void AddCorruptCommands(CLI::App* app, const CommonArguments* common,
                        std::function<absl::Status()>* command) {
  CLI::App* corrupt = app->add_subcommand("corrupt",
                                          "List blocks that are known or called corrupt, have\n"
                                          "them checked, or clear them");
  corrupt->require_subcommand(1);
  corrupt->add_subcommand("list", "List them, the oldest finding first")->callback([=] {
    *command = [common] { return RunList(*common); };
  });
  const auto add = [&](const char* name, const char* help, auto run) {
    CLI::App* added = corrupt->add_subcommand(name, help);
    // Lives as long as the program, as the app does.
    const auto block_id = std::make_shared<std::string>();
    added->add_option("BLOCK", *block_id, "Id of the block")
        ->type_name("ID")
        ->required()
        ->transform(CanonicalBlockId);
    added->callback(
        [=] { *command = [common, block_id, run] { return run(*common, *block_id); }; });
  };
  add("check",
      "Have the block's helper read it: a sound block is\n"
      "used again. Ends with 1 unless it is sound",
      RunCheck);
  add("clear", "Say that the block is sound, without a check", RunClear);
}

}  // namespace ecpipe
