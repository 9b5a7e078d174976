// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/str_format.h"
#include "base/bytes/size_text.h"
#include "base/status.h"
#include "requestor/cli/commands.h"
#include "requestor/cli/progress.h"
#include "requestor/client/coordinator_client.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

Json RecoveryJson(const RecoveryStatus& recovery) {
  Json json{{"recovery_id", recovery.recovery_id},
            {"node_id", recovery.spec.node},
            {"to", recovery.spec.to},
            {"scheme", recovery.spec.scheme},
            {"policy", recovery.spec.policy},
            {"transport", recovery.spec.transport},
            {"state", recovery.state},
            {"listing", recovery.listing},
            {"blocks", recovery.blocks},
            {"bytes", recovery.bytes},
            {"done_blocks", recovery.done_blocks},
            {"done_bytes", recovery.done_bytes},
            {"running_blocks", recovery.running_blocks},
            {"waiting_blocks", recovery.waiting_blocks},
            {"failed_blocks", recovery.failed_blocks},
            {"bytes_per_second", recovery.bytes_per_second},
            {"eta_seconds", recovery.eta_seconds < 0 ? Json() : Json(recovery.eta_seconds)},
            {"begins_in_seconds", recovery.begins_in_seconds},
            {"started_unix_ms", recovery.started_unix_ms},
            {"ended_unix_ms", recovery.ended_unix_ms},
            {"blocked", Json::array()}};
  for (const BlockedRepair& blocked : recovery.blocked) {
    json["blocked"].push_back({{"block_id", blocked.block_id},
                               {"reason", blocked.reason},
                               {"attempts", blocked.attempts},
                               {"given_up", blocked.given_up}});
  }
  return json;
}

unsigned long long Count(uint64_t number) { return number; }

void PrintRecovery(const RecoveryStatus& recovery) {
  std::printf("recovery %llu of node %s: %s\n", Count(recovery.recovery_id),
              recovery.spec.node.c_str(), recovery.state.c_str());
  std::printf("  %llu of %llu blocks, %s of %s%s\n", Count(recovery.done_blocks),
              Count(recovery.blocks), FormatSize(recovery.done_bytes).c_str(),
              FormatSize(recovery.bytes).c_str(), recovery.listing ? ", still counting" : "");
  if (recovery.begins_in_seconds > 0) {
    std::printf("  begins in %.0f s, unless the node comes back (--delay)\n",
                recovery.begins_in_seconds);
  }
  if (!recovery.ended()) {
    std::printf("  %llu running, %llu waiting, %s/s", Count(recovery.running_blocks),
                Count(recovery.waiting_blocks),
                FormatSize(static_cast<uint64_t>(recovery.bytes_per_second)).c_str());
    if (recovery.eta_seconds >= 0) std::printf(", about %.0f s to go", recovery.eta_seconds);
    std::printf("\n");
  } else if (recovery.ended_unix_ms != 0) {
    std::printf("  %.1f s\n",
                static_cast<double>(recovery.ended_unix_ms - recovery.started_unix_ms) / 1000);
  }
  if (recovery.state == "returned") {
    std::printf("  the node came back, and with it the blocks that were not rebuilt yet\n");
  }
  if (recovery.failed_blocks != 0) {
    std::printf("  %llu blocks could not be repaired\n", Count(recovery.failed_blocks));
  }
  for (const BlockedRepair& blocked : recovery.blocked) {
    std::printf("  %s %s after %u attempts: %s\n", blocked.block_id.c_str(),
                blocked.given_up ? "given up" : "waits", blocked.attempts, blocked.reason.c_str());
  }
}

absl::StatusOr<RecoveryStatus> Fetch(CoordinatorApi* coordinator, uint64_t recovery_id) {
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RecoveryStatus> found, coordinator->Recoveries(recovery_id));
  if (found.empty()) return absl::InternalError("the coordinator's answer has no recovery");
  return std::move(found.front());
}

// The coordinator has measured it for longer than this command has been looking.
Progress ProgressOf(const RecoveryStatus& recovery) {
  KnownSpeed speed{recovery.bytes_per_second, std::nullopt};
  if (recovery.eta_seconds >= 0) speed.seconds_left = recovery.eta_seconds;
  return {.done = recovery.done_bytes,
          .total = recovery.listing ? 0 : recovery.bytes,
          .blocks = Progress::Blocks{recovery.done_blocks, recovery.blocks},
          .speed = speed};
}

// Polls until the recovery has ended. A coordinator that restarts meanwhile is waited for as long
// as one call may take.
absl::StatusOr<RecoveryStatus> Follow(const CommonArguments& common, CoordinatorApi* coordinator,
                                      uint64_t recovery_id) {
  constexpr auto kPoll = std::chrono::milliseconds(200);
  ProgressDisplay display(
      {.label = "recovery " + std::to_string(recovery_id), .style = ProgressStyleOf(common)});
  bool told_of_delay = false;
  TimePoint last_answer = Clock::System().Now();
  while (true) {
    absl::StatusOr<RecoveryStatus> recovery = Fetch(coordinator, recovery_id);
    const TimePoint now = Clock::System().Now();
    if (recovery.ok()) {
      last_answer = now;
      if (recovery->ended()) return recovery;
      if (recovery->begins_in_seconds > 0 && !told_of_delay) {
        display.Say(absl::StrFormat(
            "ecpipe: rebuilding begins in %.0f s, unless the node comes back (--delay)",
            recovery->begins_in_seconds));
        told_of_delay = true;
      }
      if (recovery->bytes > 0) display.Show(ProgressOf(*recovery));
    } else if (!absl::IsUnavailable(recovery.status()) ||
               now - last_answer > FromSeconds(common.timeout_s)) {
      return recovery.status();
    }
    std::this_thread::sleep_for(kPoll);  // sleep-ok: the coordinator tells nobody
  }
}

void Show(const CommonArguments& common, const RecoveryStatus& recovery) {
  if (common.json) {
    std::printf("%s\n", RecoveryJson(recovery).dump(2).c_str());
  } else {
    PrintRecovery(recovery);
  }
}

}  // namespace

absl::Status RunRecoverNode(const CommonArguments& common, const RecoverySpec& spec,
                            bool even_if_live, bool detach) {
  ECPIPE_ASSIGN_OR_RETURN(const bool shown, ShowIfDataNode(common, spec, even_if_live, detach));
  if (shown) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t id, coordinator->BeginRecovery(spec, even_if_live));
  if (detach) {
    if (common.json) {
      std::printf("%s\n", Json{{"recovery_id", id}}.dump().c_str());
    } else {
      std::printf("recovery %llu has begun; to follow it: ecpipe recovery show %llu\n", Count(id),
                  Count(id));
    }
    return absl::OkStatus();
  }
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryStatus recovery, Follow(common, coordinator.get(), id));
  Show(common, recovery);
  if (recovery.state == "done" || recovery.state == "returned") return absl::OkStatus();
  if (recovery.state == "cancelled") return absl::CancelledError("the recovery was cancelled");
  return absl::FailedPreconditionError(std::to_string(recovery.failed_blocks) + " of " +
                                       std::to_string(recovery.blocks) +
                                       " blocks could not be repaired");
}

absl::Status RunRecoveries(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryStatus> recoveries, coordinator->Recoveries(0));
  if (common.json) {
    Json json = Json::array();
    for (const RecoveryStatus& recovery : recoveries) json.push_back(RecoveryJson(recovery));
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  std::printf("%-9s %-16s %-10s %12s %12s %8s\n", "recovery", "node", "state", "blocks", "done",
              "failed");
  for (const RecoveryStatus& recovery : recoveries) {
    std::printf("%-9llu %-16s %-10s %12llu %12llu %8llu\n", Count(recovery.recovery_id),
                recovery.spec.node.c_str(), recovery.state.c_str(), Count(recovery.blocks),
                Count(recovery.done_blocks), Count(recovery.failed_blocks));
  }
  return absl::OkStatus();
}

absl::Status RunShowRecovery(const CommonArguments& common, uint64_t recovery_id) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryStatus recovery, Fetch(coordinator.get(), recovery_id));
  Show(common, recovery);
  return absl::OkStatus();
}

absl::Status RunChangeRecovery(const CommonArguments& common, uint64_t recovery_id,
                               RecoveryChange change) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_RETURN_IF_ERROR(coordinator->ChangeRecovery(recovery_id, change));
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryStatus recovery, Fetch(coordinator.get(), recovery_id));
  Show(common, recovery);
  return absl::OkStatus();
}

}  // namespace ecpipe
