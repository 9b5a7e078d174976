// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/status_page.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/process/version.h"
#include "base/status.h"
#include "coordinator/pages/page_files.h"
#include "coordinator/pages/status_json.h"

namespace ecpipe {
namespace {

constexpr char kJsonType[] = "application/json";
// Rates over a longer time say little of now.
constexpr Duration kOldestLook = std::chrono::seconds(30);

}  // namespace

HttpReply StatusPage::Reply() {
  SeenRepairs seen;
  {
    MutexLock lock(&mutex_);
    if (making_ && json_.empty()) {
      return {503, HttpReply().type, "The first answer is being made; ask again in a second.\n"};
    }
    const bool fresh = !json_.empty() && view_.clock->Now() - made_at_ < kFresh;
    if (making_ || fresh) return {200, kJsonType, json_};
    making_ = true;
    seen = std::exchange(seen_, {});
  }
  // Also if it throws: the next one who asks tries again.
  const absl::Cleanup made = [this] {
    MutexLock lock(&mutex_);
    making_ = false;
  };
  std::string json = StatusJson(Collect(&seen));
  MutexLock lock(&mutex_);
  made_at_ = view_.clock->Now();
  json_ = std::move(json);
  seen_ = std::move(seen);
  return {200, kJsonType, json_};
}

StatusSnapshot StatusPage::Collect(SeenRepairs* seen) const {
  const ShownAtMost most;
  StatusSnapshot snapshot;
  snapshot.version = Version();
  snapshot.unix_ms = view_.clock->UnixMillis();
  const LimitsOfCluster limits = view_.limits->limits().cluster;
  snapshot.limit_bytes_per_second =
      limits.repair_bytes_per_second.value_or(view_.repair_bytes_per_second);
  snapshot.max_running = limits.max_running.value_or(view_.max_running);
  snapshot.nodes = view_.repairs->nodes().All();
  snapshot.refused = view_.repairs->nodes().Refused();
  snapshot.recoveries = view_.recoveries->All();
  snapshot.queue = view_.recoveries->Waiting(most.waiting);
  for (const CorruptBlock& block : view_.repairs->corrupt().All()) {
    ++(block.suspect ? snapshot.suspect_blocks : snapshot.corrupt_blocks);
  }
  RepairCoordinator::RunningRepairs running = view_.repairs->ShowRunning(most.repairs);
  snapshot.running_repairs = running.all;
  absl::StatusOr<std::vector<RepairRecord>> ended =
      view_.journal->RecentlyEnded(static_cast<int>(most.ended));
  if (ended.ok()) {
    snapshot.ended = *std::move(ended);
  } else {
    snapshot.ended_error = StatusText(ended.status());
  }
  SeenRepairs now;
  for (RunningRepair& repair : running.shown) {
    ShownRepair& shown = snapshot.repairs.emplace_back();
    shown.running = std::move(repair);
    if (shown.running.heard_at != TimePoint{}) {
      shown.heard_seconds_ago = Seconds(view_.clock->Now() - shown.running.heard_at);
    }
    const RepairId id = shown.running.record.repair_id;
    const auto before = seen->find(id);
    if (before != seen->end()) now[id].progress = std::move(before->second.progress);
    now[id].progress.Add(shown.running);
    shown.bytes_per_second = now[id].progress.Rate();
  }
  AskHelpers(&snapshot, *seen, &now);
  *seen = std::move(now);
  return snapshot;
}

void StatusPage::AskHelpers(StatusSnapshot* snapshot, const SeenRepairs& before,
                            SeenRepairs* now) const {
  const TimePoint until = view_.clock->Now() + kAsking;
  const std::map<std::string, std::string> silent = view_.repairs->nodes().Silent();
  for (ShownRepair& shown : snapshot->repairs) {
    const RunningRepair& repair = shown.running;
    PipelineLook& look = now->at(repair.record.repair_id).look;
    const PartAnswers answers = Ask(repair, silent, until);
    look = LookOf(answers, repair.record.attempt, view_.clock->Now());
    const auto earlier = before.find(repair.record.repair_id);
    const bool recent = earlier != before.end() && look.at - earlier->second.look.at < kOldestLook;
    shown.links =
        LinksOf(repair.receivers, recent ? &earlier->second.look : nullptr, look, repair.begin_at);
    for (const PipelineLink& link : shown.links) {
      snapshot->uses[link.from].sends += link.bytes_per_second.value_or(0);
      snapshot->uses[link.to].receives += link.bytes_per_second.value_or(0);
    }
  }
  std::map<std::string, double> sending;
  std::map<std::string, double> limits;
  for (const auto& [node, use] : snapshot->uses) sending[node] = use.sends;
  for (const NodeView& node : snapshot->nodes) {
    limits[node.record.node_id] = node.record.repair_bytes_per_second;
  }
  for (ShownRepair& shown : snapshot->repairs) {
    shown.held_back =
        WhatHoldsBack(shown.links, now->at(shown.running.record.repair_id).look, sending, limits);
  }
}

PartAnswers StatusPage::Ask(const RunningRepair& repair,
                            const std::map<std::string, std::string>& silent,
                            TimePoint until) const {
  const Duration left = until - view_.clock->Now();
  if (repair.phase != "running" || left <= Duration::zero()) return {};
  std::vector<HelperAddress> helpers = repair.helpers;
  std::erase_if(helpers, [&](const HelperAddress& helper) {
    return helper.control_address.empty() || silent.contains(helper.node);
  });
  if (helpers.empty()) return {};
  std::vector<absl::StatusOr<PartProgress>> told =
      view_.helpers->AskParts(repair.record.repair_id, repair.record.attempt, helpers,
                              std::min(left, kAskingOne), std::nullopt);
  PartAnswers answers;
  for (size_t i = 0; i < helpers.size(); ++i) {
    answers.emplace(helpers[i].node, std::move(told[i]));
  }
  return answers;
}

HttpServer::Pages StatusPage::Pages() {
  HttpServer::Pages pages = PageFiles();
  pages["/status.json"] = [this] { return Reply(); };
  return pages;
}

}  // namespace ecpipe
