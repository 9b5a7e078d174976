// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/link_prober.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/str_format.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/repairs/part_builder.h"
#include "model/plan/random_ids.h"

namespace ecpipe {
namespace {

// One sender, whose block is made up, and one receiver.
RepairPlan PlanOf(const ProbedLink& link, uint64_t bytes) {
  RepairPlan plan;
  plan.scheme = "probe";
  plan.grid = {0, bytes, static_cast<uint32_t>(std::min<uint64_t>(bytes, kDefaultSliceBytes))};
  plan.failed = {0};
  PlanLane& lane = plan.lanes.emplace_back();
  lane.slices = LaneSlices::All(plan.grid.slice_count());
  lane.hops = {{.node = link.from, .block_index = 0, .rows = {0}, .coefficients = {1}},
               {.node = link.to, .rows = {0}, .inputs = {{0, {0}, {}}}, .stored_rows = {0}}};
  return plan;
}

// The most that a node may send in a round, and receive.
size_t StreamsOfNode(LinkProber::Kind kind) { return kind == LinkProber::Kind::kEachLink ? 1 : 2; }

}  // namespace

absl::Status LinkProber::Admit(const std::vector<std::pair<std::string, std::string>>& links,
                               uint64_t bytes, Kind kind) {
  if (links.empty()) return absl::InvalidArgumentError("there are no links to probe");
  if (bytes < options_.min_bytes || bytes > options_.max_bytes) {
    return absl::InvalidArgumentError("a probe must send from " +
                                      std::to_string(options_.min_bytes) + " to " +
                                      std::to_string(options_.max_bytes) + " bytes");
  }
  std::multiset<std::string> senders;
  std::multiset<std::string> receivers;
  const size_t most = StreamsOfNode(kind);
  for (const auto& [from, to] : links) {
    if (from == to) return absl::InvalidArgumentError("node " + from + " has no link to itself");
    senders.insert(from);
    receivers.insert(to);
    if (senders.count(from) > most || receivers.count(to) > most) {
      return absl::InvalidArgumentError(
          kind == Kind::kEachLink
              ? "in one round of probes a node may send once and receive once"
              : "in a round about what links share a node may send twice and receive twice");
    }
  }
  MutexLock lock(&mutex_);
  if (stopping_) return absl::UnavailableError("the coordinator is shutting down");
  if (busy_) return absl::ResourceExhaustedError("another round of probes is running");
  const Duration rest = rested_ - clock_->Now();
  if (rest > Duration(0)) {
    return absl::ResourceExhaustedError("the limit of [probe] max_mbit allows the next probes in " +
                                        absl::StrFormat("%.2f", Seconds(rest)) + " s");
  }
  busy_ = true;
  round_.clear();
  kind_ = kind;
  std::set<std::string> nodes(senders.begin(), senders.end());
  nodes.insert(receivers.begin(), receivers.end());
  hold_ = busy_nodes_->Reserve({nodes.begin(), nodes.end()});
  for (const auto& [from, to] : links) round_.push_back({from, to, {}, 0});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<HelperGateway::Handout>> LinkProber::MakeHandouts(const ProbedLink& link,
                                                                             RepairId repair_id,
                                                                             uint64_t bytes) {
  const Stripe stripe{"probe", "", bytes, {{"probe", link.from}}};
  PartContext context;
  context.repair_id = repair_id;
  context.stripe = &stripe;
  context.new_token = RandomToken;
  std::vector<HelperAddress> ends;
  for (const std::string& node : {link.from, link.to}) {
    const std::optional<NodeView> view = nodes_->Find(node);
    if (!view || view->state != NodeState::kLive) {
      return absl::FailedPreconditionError("node " + node + " is " +
                                           (view ? NodeStateName(view->state) : "not registered"));
    }
    context.addresses[node] = view->record.data_address;
    ends.push_back({node, view->record.control_address});
  }
  ECPIPE_ASSIGN_OR_RETURN(auto parts, BuildParts(PlanOf(link, bytes), context));
  std::vector<HelperGateway::Handout> handouts;
  for (HelperAddress& end : ends) {
    RepairPart& part = parts.at(end.node);
    part.probe = true;
    handouts.push_back({std::move(end), std::move(part)});
  }
  return handouts;
}

absl::StatusOr<ProbeRound> LinkProber::Probe(
    const std::vector<std::pair<std::string, std::string>>& links, uint64_t bytes, Kind kind) {
  ECPIPE_RETURN_IF_ERROR(Admit(links, bytes, kind));
  std::vector<HelperGateway::Handout> handouts;
  for (size_t i = 0; i < links.size(); ++i) {
    const RepairId repair_id = RandomRepairId();
    auto of_link = MakeHandouts({links[i].first, links[i].second, {}, 0}, repair_id, bytes);
    MutexLock lock(&mutex_);
    if (!of_link.ok()) {
      round_[i].status = of_link.status();
      continue;
    }
    running_[repair_id] = {
        i, {(*of_link)[0].helper, (*of_link)[1].helper}, {links[i].first, links[i].second}};
    for (HelperGateway::Handout& handout : *of_link) handouts.push_back(std::move(handout));
  }
  const std::vector<absl::StatusOr<HelperGateway::Started>> outcomes =
      helpers_->StartParts(handouts, options_.handout_timeout, std::nullopt);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!outcomes[i].ok()) Report("", handouts[i].part.repair_id, outcomes[i].status(), {});
  }
  AwaitReports();
  ProbeRound round;
  {
    MutexLock lock(&mutex_);
    if (kind == Kind::kWhatIsShared) CompareStreams();
    round = {std::move(round_),
             static_cast<double>(StreamsOfNode(kind) * bytes) / options_.max_bytes_per_second};
    rested_ = clock_->Now() + FromSeconds(round.rest_seconds);
    busy_ = false;
    hold_.reset();
  }
  Log(LogLevel::kInfo, "links.probed",
      {{"links", std::to_string(links.size())}, {"bytes", std::to_string(bytes)}});
  return round;
}

bool LinkProber::Report(const std::string& node, RepairId repair_id, const absl::Status& status,
                        const std::vector<LinkTiming>& timings) {
  std::vector<HelperAddress> to_cancel;
  {
    MutexLock lock(&mutex_);
    const auto found = running_.find(repair_id);
    if (found == running_.end()) return false;
    ProbedLink& link = round_[found->second.link];
    for (const LinkTiming& timing : timings) {
      if (node != link.from || timing.to != link.to) continue;
      const double speed = static_cast<double>(timing.bytes) / timing.seconds;
      if (!std::isfinite(speed) || speed <= 0) continue;
      link.bytes_per_second = speed;
      if (kind_ == Kind::kWhatIsShared) continue;  // that is compared when all have ended
      speeds_->RecordProbe(link.from, timing, !hold_->Shared(link.from) && !hold_->Shared(link.to));
    }
    found->second.unreported.erase(node);
    if (!status.ok()) {
      link.status = status;
      to_cancel = found->second.ends;
    } else if (found->second.unreported.empty() && link.bytes_per_second == 0) {
      link.status =
          absl::InternalError("node " + link.from + " did not report how long the probe took");
    }
    if (!status.ok() || found->second.unreported.empty()) running_.erase(found);
    if (running_.empty()) ended_.NotifyAll();
  }
  if (!to_cancel.empty()) helpers_->CancelRepair(repair_id, 0, to_cancel);
  return true;
}

void LinkProber::CompareStreams() {
  std::vector<KnownLinks::Stream> streams;
  std::map<std::string, std::string> racks;
  for (const ProbedLink& link : round_) {
    if (!link.status.ok() || link.bytes_per_second <= 0) continue;
    // A repair that ran beside took its share: what is missing would count as shared.
    if (hold_->Shared(link.from) || hold_->Shared(link.to)) continue;
    streams.push_back({link.from, link.to, link.bytes_per_second});
    for (const std::string& node : {link.from, link.to}) {
      if (const std::optional<NodeView> view = nodes_->Find(node)) racks[node] = view->record.rack;
    }
  }
  speeds_->RecordTogether(streams, racks);
}

void LinkProber::Stop() {
  MutexLock lock(&mutex_);
  stopping_ = true;
  ended_.NotifyAll();
}

void LinkProber::AwaitReports() {
  const auto deadline = Clock::System().Now() + options_.patience;
  std::map<RepairId, Running> late;
  {
    MutexLock lock(&mutex_);
    while (!running_.empty() && !stopping_ && ended_.WaitUntil(lock, deadline)) {
    }
    late.swap(running_);
    for (const auto& [repair_id, running] : late) {
      ProbedLink& link = round_[running.link];
      if (link.bytes_per_second > 0) continue;  // only the receiver's word is missing
      link.status = stopping_ ? absl::CancelledError("the coordinator is shutting down")
                              : absl::DeadlineExceededError(
                                    "the probe did not end within " +
                                    absl::StrFormat("%.2f", Seconds(options_.patience)) + " s");
    }
  }
  for (const auto& [repair_id, running] : late) helpers_->CancelRepair(repair_id, 0, running.ends);
}

}  // namespace ecpipe
