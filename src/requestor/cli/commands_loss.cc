// SPDX-License-Identifier: Apache-2.0
// What `ecpipe recover-node` does for a node of a storage system, which rebuilds its blocks itself:
// it looks on.
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes/size_text.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/progress.h"
#include "requestor/cli/system_words.h"

namespace ecpipe {
namespace {

using LossJson = nlohmann::ordered_json;

unsigned long long Shown(uint64_t number) { return number; }

// Why HDFS may not have ordered repairs.
std::string WhyHdfsIsIdle(const NodeLoss& loss) {
  if (!loss.facts.safe_mode.empty()) {
    return "the NameNode orders none in safe mode (hdfs dfsadmin -safemode get)";
  }
  if (loss.state_in_system == "dead") {
    return "the NameNode knows that the node is dead and orders repairs as fast as its throttles "
           "allow (dfs.namenode.replication.*); DataNodes need the plugin to repair through ECPipe";
  }
  const std::string waits = loss.state_in_system == "live" ? "the NameNode still counts the node "
                                                             "as live; "
                                                           : "";
  return waits +
         "by default the NameNode waits 10.5 minutes before it gives up a silent node, and "
         "DataNodes need the plugin to repair through ECPipe";
}

std::string WhyIdle(const NodeLoss& loss) {
  if (loss.system == "hdfs") return WhyHdfsIsIdle(loss);
  const SystemWords words = WordsOf(loss.system);
  return std::string("the ") + words.manager + " orders them by its own rules, and each " +
         words.node + " needs the hook to repair through ECPipe";
}

// What of the numbers is uncertain, because of the manager's answers.
void AddHintsOfFacts(const NodeLoss& loss, std::vector<std::string>* hints) {
  const SystemWords words = WordsOf(loss.system);
  const std::string manager = words.manager;
  if (!loss.facts.configured) {
    hints->push_back("no " + manager + " is configured (" + words.setting +
                     "), so blocks of deleted files count as outstanding");
  } else if (!loss.facts.age_seconds) {
    hints->push_back(
        "the " + manager + " has not answered yet: " +
        (loss.facts.last_error.empty() ? "the first answer is on its way" : loss.facts.last_error));
  } else if (!loss.facts.last_error.empty()) {
    hints->push_back("the " + manager + "'s last answer is out of date; asking again failed: " +
                     loss.facts.last_error);
  }
}

// Why nothing may be happening, and what of the numbers is uncertain.
std::vector<std::string> HintsOf(const NodeLoss& loss) {
  const SystemWords words = WordsOf(loss.system);
  std::vector<std::string> hints;
  if (loss.state != "dead" && loss.helper_state == "dead") {
    hints.push_back("the helper beside it has been silent for " +
                    std::to_string(static_cast<int64_t>(loss.helper_silent_seconds)) +
                    " s, so repairs do not read its blocks: start the helper");
  }
  if (loss.loss.outstanding.blocks == 0) return hints;
  if (loss.loss.repairs_running == 0) hints.push_back("no repair is running: " + WhyIdle(loss));
  if (loss.unreported_nodes > 0) {
    hints.push_back(std::to_string(loss.unreported_nodes) + " live " + words.node +
                    "s have not reported their blocks yet; these blocks count as missing");
  } else if (loss.loss.beyond_repair > 0) {
    hints.push_back(std::string("some ") + words.stripe +
                    "s lack more blocks than their parity makes up for: they are lost unless "
                    "a node comes back");
  }
  AddHintsOfFacts(loss, &hints);
  return hints;
}

LossJson CountJson(const BlockCount& count) {
  return {{"blocks", count.blocks}, {"bytes", count.bytes}};
}

LossJson JsonOf(const NodeLoss& loss) {
  const SourceFacts& facts = loss.facts;
  return {{"node_id", loss.node},
          {"hdfs", loss.system == "hdfs"},
          {"system", loss.system},
          {"state", loss.state},
          {"seconds_since_heartbeat", loss.silent_seconds},
          {"lost", CountJson(loss.loss.lost)},
          {"rebuilt", CountJson(loss.loss.rebuilt)},
          {"gone", CountJson(loss.loss.gone)},
          {"outstanding", CountJson(loss.loss.outstanding)},
          {"by_missing", loss.loss.by_missing},
          {"of_unknown_groups", loss.loss.of_unknown_groups},
          {"beyond_repair", loss.loss.beyond_repair},
          {"repairs_running", loss.loss.repairs_running},
          {"report_age_seconds", loss.report_age_seconds},
          {"unreported_nodes", loss.unreported_nodes},
          {"facts_age_seconds", facts.age_seconds ? LossJson(*facts.age_seconds) : LossJson()},
          {"facts_error", facts.last_error},
          {"state_in_hdfs", loss.state_in_system},
          {"helper_state", loss.helper_state},
          {"helper_silent_seconds", loss.helper_silent_seconds},
          {"safe_mode", facts.safe_mode},
          {"hints", HintsOf(loss)}};
}

void PrintLoss(const NodeLoss& loss) {
  const SystemWords words = WordsOf(loss.system);
  if (loss.state != "dead") {
    std::printf("%s %s is %s, so none of its blocks is lost\n", words.node, loss.node.c_str(),
                loss.state.c_str());
    for (const std::string& hint : HintsOf(loss)) std::printf("  hint: %s\n", hint.c_str());
    return;
  }
  std::printf("%s %s has been dead for %.0f s; %s rebuilds its blocks\n", words.node,
              loss.node.c_str(), loss.silent_seconds, words.name);
  std::printf("  %llu of %llu blocks rebuilt, %s of %s; %llu no longer wanted\n",
              Shown(loss.loss.rebuilt.blocks), Shown(loss.loss.lost.blocks),
              FormatSize(loss.loss.rebuilt.bytes).c_str(), FormatSize(loss.loss.lost.bytes).c_str(),
              Shown(loss.loss.gone.blocks));
  if (loss.loss.outstanding.blocks > 0) {
    std::printf(
        "  %llu blocks outstanding, %s: %llu in groups that lack 1 block, %llu in groups that "
        "lack 2, %llu in groups that lack 3 or more, %llu in unknown groups\n",
        Shown(loss.loss.outstanding.blocks), FormatSize(loss.loss.outstanding.bytes).c_str(),
        Shown(loss.loss.by_missing[0]), Shown(loss.loss.by_missing[1]),
        Shown(loss.loss.by_missing[2]), Shown(loss.loss.of_unknown_groups));
  }
  std::printf("  %llu repairs running; reports of blocks are up to %.0f s old, the %s's answer ",
              Shown(loss.loss.repairs_running), loss.report_age_seconds, words.manager);
  if (loss.facts.age_seconds) {
    std::printf("is %.0f s old\n", *loss.facts.age_seconds);
  } else {
    std::printf("has not come yet\n");
  }
  for (const std::string& hint : HintsOf(loss)) std::printf("  hint: %s\n", hint.c_str());
}

void ShowLoss(const CommonArguments& common, const NodeLoss& loss) {
  if (common.json) {
    std::printf("%s\n", JsonOf(loss).dump(2).c_str());
  } else {
    PrintLoss(loss);
  }
}

bool Over(const NodeLoss& loss) {
  return loss.state != "dead" || loss.loss.outstanding.blocks == 0;
}

Progress ProgressOf(const NodeLoss& loss) {
  return {.done = loss.loss.rebuilt.bytes + loss.loss.gone.bytes,
          .total = loss.loss.lost.bytes,
          .blocks = Progress::Blocks{loss.loss.rebuilt.blocks + loss.loss.gone.blocks,
                                     loss.loss.lost.blocks}};
}

// Polls until nothing is outstanding. A coordinator that does not answer is waited for as long as
// one call may take.
absl::StatusOr<NodeLoss> FollowLoss(const CommonArguments& common, CoordinatorApi* coordinator,
                                    NodeLoss loss) {
  constexpr auto kPoll = std::chrono::seconds(1);
  ProgressDisplay display({.label = std::string("rebuilt by ") + WordsOf(loss.system).name,
                           .style = ProgressStyleOf(common)});
  bool hinted = false;
  TimePoint last_answer = Clock::System().Now();
  while (!Over(loss)) {
    if (!hinted) {
      for (const std::string& hint : HintsOf(loss)) display.Say("ecpipe: " + hint);
      hinted = true;
    }
    if (loss.loss.lost.bytes > 0) display.Show(ProgressOf(loss));
    std::this_thread::sleep_for(kPoll);  // sleep-ok: the coordinator tells nobody
    absl::StatusOr<std::optional<NodeLoss>> next = coordinator->LossOf(loss.node);
    const TimePoint now = Clock::System().Now();
    if (next.ok() && next->has_value()) {
      last_answer = now;
      loss = **std::move(next);
    } else if (!absl::IsUnavailable(next.status()) ||
               now - last_answer > FromSeconds(common.timeout_s)) {
      if (!next.ok()) return next.status();
      return absl::NotFoundError("the coordinator no longer knows node " + loss.node);
    }
  }
  return loss;
}

// What is for blocks that ECPipe stores itself.
bool SaysHowToRecover(const RecoverNodeArguments& arguments) {
  const RecoveryRequest& request = arguments.request;
  return arguments.even_if_live || arguments.missing || !request.hosts.empty() ||
         !request.scheme.empty() || request.policy != RecoveryPolicy::kBalanced ||
         request.slice_bytes != 0 || !arguments.transport.empty() ||
         request.streams_per_node != 0 || request.delay_seconds >= 0;
}

}  // namespace

absl::StatusOr<bool> ShowIfSystemNode(const CommonArguments& common,
                                      const RecoverNodeArguments& arguments) {
  const std::string& node = arguments.request.node;
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(std::optional<NodeLoss> loss, coordinator->LossOf(node));
  if (!loss) return false;
  if (SaysHowToRecover(arguments)) {
    const SystemWords words = WordsOf(loss->system);
    return absl::InvalidArgumentError(
        "node " + node + " is a " + words.node + ": " + words.name +
        " decides how its blocks are rebuilt; leave out all options " + "but --detach");
  }
  if (!arguments.detach) {
    ECPIPE_ASSIGN_OR_RETURN(loss, FollowLoss(common, coordinator.get(), *std::move(loss)));
  }
  ShowLoss(common, *loss);
  return true;
}

}  // namespace ecpipe
