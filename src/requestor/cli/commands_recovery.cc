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
#include "requestor/cli/progress_text.h"
#include "requestor/cli/terminal.h"
#include "requestor/client/coordinator_client.h"

namespace ecpipe {
namespace {

using Json = nlohmann::ordered_json;

unsigned long long Count(uint64_t number) { return number; }

void PrintRecovery(const RecoveryView& recovery) {
  const RecoveryRecord& record = recovery.record;
  const RecoveryKind kind = record.request.kind;
  std::printf("recovery %llu of node %s%s: %s\n", Count(record.recovery_id),
              record.request.node.c_str(),
              kind == RecoveryKind::kMove          ? ", a drain"
              : kind == RecoveryKind::kMaintenance ? ", a maintenance"
                                                   : "",
              RecoveryStateName(record.state));
  if (InMaintenance(record)) {
    std::printf(
        "  node %s takes no blocks; what it does not have in %s is rebuilt then, and nothing "
        "before\n",
        record.request.node.c_str(), DurationText(recovery.begins_in_seconds).c_str());
    return;
  }
  std::printf("  %llu of %llu blocks, %s of %s%s\n", Count(record.done_blocks),
              Count(record.blocks), FormatSize(record.done_bytes).c_str(),
              FormatSize(record.bytes).c_str(), recovery.listing ? ", still counting" : "");
  if (!Ended(record.state)) {
    std::printf("  %llu running, %llu waiting, %s/s", Count(recovery.running_blocks),
                Count(recovery.waiting_blocks),
                FormatSize(static_cast<uint64_t>(recovery.bytes_per_second)).c_str());
    if (recovery.eta_seconds >= 0) std::printf(", about %.0f s to go", recovery.eta_seconds);
    std::printf("\n");
  } else if (record.ended_unix_ms != 0) {
    std::printf("  %.1f s\n",
                static_cast<double>(record.ended_unix_ms - record.started_unix_ms) / 1000);
  }
  if (record.state == RecoveryState::kReturned) {
    std::printf("  the node came back, and has the blocks that were not rebuilt\n");
  }
  if (record.keeps_out) {
    std::printf("  node %s takes no blocks\n", record.request.node.c_str());
  }
  if (record.failed_blocks != 0) {
    std::printf("  %llu blocks could not be repaired\n", Count(record.failed_blocks));
  }
  if (recovery.there_blocks != 0) {
    std::printf("  %llu blocks are on the node again\n", Count(recovery.there_blocks));
  }
  for (const RecoveryWait& wait : recovery.waits) {
    std::printf("  %llu waiting (%s): %s\n", Count(wait.blocks), WaitKindName(wait.kind),
                wait.reason.c_str());
  }
  for (const BlockedBlock& blocked : recovery.blocked) {
    const std::string state =
        blocked.given_up ? "given up"
                         : absl::StrFormat("waits (%s; next try in %.0f s)",
                                           WaitKindName(blocked.kind), blocked.next_try_in_seconds);
    std::printf("  %s %s after %d attempts: %s\n", blocked.block_id.c_str(), state.c_str(),
                blocked.attempts, blocked.reason.c_str());
  }
}

absl::StatusOr<RecoveryView> Fetch(CoordinatorApi* coordinator, uint64_t recovery_id) {
  ECPIPE_ASSIGN_OR_RETURN(std::vector<RecoveryView> found, coordinator->Recoveries(recovery_id));
  if (found.empty()) return absl::InternalError("the coordinator's answer has no recovery");
  return std::move(found.front());
}

// The coordinator has measured it for longer than this command has been looking.
Progress ProgressOf(const RecoveryView& recovery) {
  KnownSpeed speed{recovery.bytes_per_second, std::nullopt};
  if (recovery.eta_seconds >= 0) speed.seconds_left = recovery.eta_seconds;
  return {.done = recovery.record.done_bytes,
          .total = recovery.listing ? 0 : recovery.record.bytes,
          .blocks = Progress::Blocks{recovery.record.done_blocks, recovery.record.blocks},
          .speed = speed};
}

// Why nothing runs, in words that change only when the reason does; empty: something runs, or will
// in a moment.
std::string WhyIdle(const RecoveryView& recovery) {
  if (recovery.running_blocks > 0 || recovery.waits.empty()) return "";
  const RecoveryWait& most = recovery.waits.front();
  switch (most.kind) {
    case WaitKind::kNext:
    case WaitKind::kStreams:
    case WaitKind::kStarting:
      return "";
    case WaitKind::kDelay:
      return "rebuilding begins later, unless the node comes back (--delay)";
    default:
      return absl::StrFormat("%d blocks wait (%s); to see why: ecpipe recovery show %d",
                             most.blocks, WaitKindName(most.kind), recovery.record.recovery_id);
  }
}

// Polls until the recovery has ended. A coordinator that restarts meanwhile is waited for as long
// as one call may take.
absl::StatusOr<RecoveryView> Follow(const CommonArguments& common, CoordinatorApi* coordinator,
                                    uint64_t recovery_id) {
  constexpr auto kPoll = std::chrono::milliseconds(200);
  ProgressDisplay display(
      {.label = "recovery " + std::to_string(recovery_id), .style = ProgressStyleOf(common)});
  std::string told;  // what it waits for
  TimePoint last_answer = Clock::System().Now();
  while (true) {
    absl::StatusOr<RecoveryView> recovery = Fetch(coordinator, recovery_id);
    const TimePoint now = Clock::System().Now();
    if (recovery.ok()) {
      last_answer = now;
      if (Ended(recovery->record.state)) return recovery;
      const std::string idle = WhyIdle(*recovery);
      if (!idle.empty() && idle != told) display.Say("ecpipe: " + idle);
      told = idle;
      if (recovery->record.bytes > 0) display.Show(ProgressOf(*recovery));
    } else if (!absl::IsUnavailable(recovery.status()) ||
               now - last_answer > FromSeconds(common.timeout_s)) {
      return recovery.status();
    }
    std::this_thread::sleep_for(kPoll);  // sleep-ok: the coordinator tells nobody
  }
}

void Show(const CommonArguments& common, const RecoveryView& recovery) {
  if (common.json) {
    std::printf("%s\n", RecoveryJson(recovery).dump(2).c_str());
  } else {
    PrintRecovery(recovery);
  }
}

// As Show, with the limits that hold its repairs.
void ShowWithLimits(const CommonArguments& common, const RecoveryView& recovery,
                    const ClusterLimitsView& limits) {
  if (!common.json) {
    PrintRecovery(recovery);
    std::printf("  limits: %s\n", RecoveryLimitsText(limits, recovery).c_str());
    return;
  }
  Json json = RecoveryJson(recovery);
  json["limits"] = ClusterLimitsJson(limits);
  json["limits"]["streams_per_node"] = recovery.streams_per_node;
  json["limits"]["streams_per_node_is_own"] = recovery.record.request.streams_per_node != 0;
  std::printf("%s\n", json.dump(2).c_str());
}

// As Show, with what became of each block.
void ShowVerified(const CommonArguments& common, const RecoveryView& recovery,
                  const Verification& verification) {
  if (!common.json) {
    PrintRecovery(recovery);
    if (!verification.wrong.empty()) PrintTable(WrongBlocks(verification.wrong));
    std::printf("  %s\n", verification.Text().c_str());
    return;
  }
  Json json = RecoveryJson(recovery);
  json["verified_blocks"] = verification.verified;
  json["not_verified"] = WrongBlocksJson(verification.wrong);
  std::printf("%s\n", json.dump(2).c_str());
}

absl::Status OutcomeOf(const RecoveryRecord& record) {
  if (record.state == RecoveryState::kDone || record.state == RecoveryState::kReturned) {
    return absl::OkStatus();
  }
  if (record.state == RecoveryState::kCancelled) {
    return absl::CancelledError("the recovery was cancelled");
  }
  return absl::FailedPreconditionError(std::to_string(record.failed_blocks) + " of " +
                                       std::to_string(record.blocks) +
                                       " blocks could not be repaired");
}

void RestASecond() {
  std::this_thread::sleep_for(std::chrono::seconds(1));  // sleep-ok: the coordinator tells nobody
}

}  // namespace

Json RecoveryJson(const RecoveryView& recovery) {
  const RecoveryRecord& record = recovery.record;
  const RecoveryRequest& request = record.request;
  Json json{{"recovery_id", record.recovery_id},
            {"node_id", request.node},
            {"kind", RecoveryKindName(request.kind)},
            {"to", request.hosts},
            {"scheme", request.scheme},
            {"policy", RecoveryPolicyName(request.policy)},
            {"transport", TransportName(request.transport.value_or(TransportKind::kTcp))},
            {"state", RecoveryStateName(record.state)},
            {"listing", recovery.listing},
            {"blocks", record.blocks},
            {"bytes", record.bytes},
            {"done_blocks", record.done_blocks},
            {"done_bytes", record.done_bytes},
            {"running_blocks", recovery.running_blocks},
            {"waiting_blocks", recovery.waiting_blocks},
            {"there_blocks", recovery.there_blocks},
            {"failed_blocks", record.failed_blocks},
            {"bytes_per_second", recovery.bytes_per_second},
            {"eta_seconds", recovery.eta_seconds < 0 ? Json() : Json(recovery.eta_seconds)},
            {"begins_in_seconds", recovery.begins_in_seconds},
            {"started_unix_ms", record.started_unix_ms},
            {"ended_unix_ms", record.ended_unix_ms},
            {"keeps_out", record.keeps_out},
            {"waits", Json::array()},
            {"blocked", Json::array()}};
  for (const RecoveryWait& wait : recovery.waits) {
    json["waits"].push_back(
        {{"kind", WaitKindName(wait.kind)}, {"blocks", wait.blocks}, {"reason", wait.reason}});
  }
  for (const BlockedBlock& blocked : recovery.blocked) {
    json["blocked"].push_back({{"block_id", blocked.block_id},
                               {"reason", blocked.reason},
                               {"attempts", blocked.attempts},
                               {"given_up", blocked.given_up},
                               {"kind", WaitKindName(blocked.kind)},
                               {"next_try_in_seconds", blocked.next_try_in_seconds}});
  }
  return json;
}

absl::Status FollowAndVerify(const CommonArguments& common, CoordinatorApi* coordinator,
                             CatalogApi* catalog, uint64_t recovery_id,
                             const absl::StatusOr<std::vector<std::string>>& blocks) {
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryView recovery, Follow(common, coordinator, recovery_id));
  // Helpers are busy at times, and after a start of the coordinator they have to register.
  const Patience patience{.tries = OutcomeOf(recovery.record).ok() ? 10 : 1, .rest = RestASecond};
  absl::StatusOr<std::vector<BlockCheck>> checks =
      blocks.ok() ? VerifyBlocks(catalog, *blocks, patience) : blocks.status();
  if (!checks.ok()) {
    Show(common, recovery);
    ECPIPE_RETURN_IF_ERROR(OutcomeOf(recovery.record));
    return Annotate(checks.status(), "the blocks were not verified");
  }
  const Verification verification = SumOf(*std::move(checks));
  ShowVerified(common, recovery, verification);
  ECPIPE_RETURN_IF_ERROR(OutcomeOf(recovery.record));
  if (verification.wrong.empty()) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat("%d of %d blocks are not verified",
                                             verification.wrong.size(), verification.all));
}

void PrintRecoveryBegun(const CommonArguments& common, uint64_t recovery_id) {
  if (common.json) {
    std::printf("%s\n", Json{{"recovery_id", recovery_id}}.dump().c_str());
  } else {
    std::printf("recovery %llu has begun; to follow it: ecpipe recovery show %llu\n",
                Count(recovery_id), Count(recovery_id));
  }
}

absl::Status RunRecoverNode(const CommonArguments& common, const RecoverNodeArguments& arguments) {
  RecoverNodeArguments look = arguments;
  look.detach |= arguments.dry_run;  // what a system does by itself is shown, and not followed
  ECPIPE_ASSIGN_OR_RETURN(const bool shown, ShowIfSystemNode(common, look));
  if (shown) return absl::OkStatus();
  RecoveryRequest request = arguments.request;
  if (!arguments.transport.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(request.transport, TransportNamed(arguments.transport));
  }
  const IfLive if_live = arguments.even_if_live ? IfLive::kRebuildAll
                         : arguments.missing    ? IfLive::kRebuildMissing
                                                : IfLive::kRefuse;
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CatalogApi> catalog, ConnectCatalog(common));
  if (arguments.dry_run) return PrintEffects(common, catalog->WouldRecover(request, if_live));
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  // Before it begins: rebuilt blocks are on other nodes. A coordinator that is too old to list them
  // recovers the node all the same.
  absl::StatusOr<std::vector<std::string>> blocks = std::vector<std::string>();
  if (!arguments.detach) blocks = catalog->NodeBlocks(request.node);
  if (!blocks.ok() && !absl::IsUnimplemented(blocks.status())) return blocks.status();
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t id, coordinator->BeginRecovery(request, if_live));
  if (!arguments.detach) {
    return FollowAndVerify(common, coordinator.get(), catalog.get(), id, blocks);
  }
  PrintRecoveryBegun(common, id);
  return absl::OkStatus();
}

absl::Status RunRecoveries(const CommonArguments& common) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<RecoveryView> recoveries, coordinator->Recoveries(0));
  if (common.json) {
    Json json = Json::array();
    for (const RecoveryView& recovery : recoveries) json.push_back(RecoveryJson(recovery));
    std::printf("%s\n", json.dump(2).c_str());
    return absl::OkStatus();
  }
  using Align = Table::Align;
  Table table({{"recovery", Align::kRight},
               {"node", Align::kLeft, /*shrinks=*/true},
               {"kind"},
               {"state"},
               {"blocks", Align::kRight},
               {"done", Align::kRight},
               {"failed", Align::kRight}});
  for (const RecoveryView& recovery : recoveries) {
    const RecoveryRecord& record = recovery.record;
    table.Add({{std::to_string(record.recovery_id)},
               {record.request.node},
               {RecoveryKindName(record.request.kind)},
               {RecoveryStateName(record.state)},
               {std::to_string(record.blocks)},
               {std::to_string(record.done_blocks)},
               {std::to_string(record.failed_blocks)}});
  }
  PrintTable(table);
  return absl::OkStatus();
}

absl::Status RunShowRecovery(const CommonArguments& common, uint64_t recovery_id) {
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryView recovery, Fetch(coordinator.get(), recovery_id));
  if (Ended(recovery.record.state)) {
    Show(common, recovery);
    return absl::OkStatus();
  }
  ECPIPE_ASSIGN_OR_RETURN(const ClusterLimitsView limits, coordinator->Limits());
  ShowWithLimits(common, recovery, limits);
  return absl::OkStatus();
}

absl::Status RunChangeRecovery(const CommonArguments& common, uint64_t recovery_id,
                               RecoveryChange change, bool dry_run) {
  if (dry_run) {
    ECPIPE_ASSIGN_OR_RETURN(const auto catalog, ConnectCatalog(common));
    return PrintEffects(common, catalog->WouldChange(recovery_id, change));
  }
  ECPIPE_ASSIGN_OR_RETURN(const std::unique_ptr<CoordinatorApi> coordinator,
                          ConnectCoordinator(common));
  ECPIPE_RETURN_IF_ERROR(coordinator->ChangeRecovery(recovery_id, change));
  ECPIPE_ASSIGN_OR_RETURN(const RecoveryView recovery, Fetch(coordinator.get(), recovery_id));
  Show(common, recovery);
  return absl::OkStatus();
}

}  // namespace ecpipe
