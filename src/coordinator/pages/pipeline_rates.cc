// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/pipeline_rates.h"

#include <algorithm>
#include <utility>

namespace ecpipe {
namespace {

// Rates of a shorter time say more of the moment at which the helpers answered.
constexpr double kLeastSeconds = 0.05;
// A link that holds others up is in use for most of the time.
constexpr double kHoldsUp = 0.5;
// A node that sends so much of what it may is held back by that.
constexpr double kAtItsLimit = 0.8;
constexpr size_t kMostMarks = 64;

}  // namespace

PipelineLook LookOf(const PartAnswers& answers, uint32_t attempt, TimePoint at) {
  PipelineLook look{at, attempt, SentBy(answers), {}};
  for (const auto& [node, answer] : answers) {
    if (!answer.ok()) continue;
    const bool waits = std::any_of(answer->hops.begin(), answer->hops.end(),
                                   [](const HopProgress& hop) { return hop.waits_for_disk; });
    if (waits) look.on_disk.insert(node);
  }
  return look;
}

std::vector<PipelineLink> LinksOf(const Receivers& receivers, const PipelineLook* before,
                                  const PipelineLook& now, TimePoint began) {
  std::map<std::pair<std::string, std::string>, PipelineLink> links;
  for (const auto& [from, all] : receivers) {
    for (const std::string& to : all) {
      PipelineLink& link = links[{from, to}];
      link.from = from;
      link.to = to;
      ++link.streams;
    }
  }
  if (before != nullptr && before->attempt != now.attempt) before = nullptr;
  for (const auto& [stream, passed] : now.sent) {
    // A helper tells of its own streams only; what it makes up besides is left out.
    const auto link = links.find({std::get<0>(stream), std::get<3>(stream)});
    const bool told_before = before != nullptr && before->sent.contains(stream);
    const double seconds = Seconds(now.at - (told_before ? before->at : began));
    if (link == links.end() || seconds < kLeastSeconds) continue;
    const Passed earlier = told_before ? before->sent.at(stream) : Passed{};
    const uint64_t bytes = passed.bytes - std::min(passed.bytes, earlier.bytes);
    const double network = std::max(0.0, passed.network_seconds - earlier.network_seconds);
    link->second.bytes_per_second =
        link->second.bytes_per_second.value_or(0) + static_cast<double>(bytes) / seconds;
    link->second.network_share =
        std::min(1.0, std::max(link->second.network_share, network / seconds));
  }
  std::vector<PipelineLink> list;
  for (auto& [ends, link] : links) list.push_back(std::move(link));
  return list;
}

const char* HeldBackName(HeldBack::By by) {
  switch (by) {
    case HeldBack::By::kLink:
      return "link";
    case HeldBack::By::kLimit:
      return "limit";
    case HeldBack::By::kDisk:
      return "disk";
  }
  return "link";
}

std::optional<HeldBack> WhatHoldsBack(const std::vector<PipelineLink>& links,
                                      const PipelineLook& now,
                                      const std::map<std::string, double>& sending,
                                      const std::map<std::string, double>& limits) {
  for (const PipelineLink& link : links) {
    const auto limit = limits.find(link.from);
    const auto sends = sending.find(link.from);
    if (limit == limits.end() || limit->second <= 0 || sends == sending.end()) continue;
    if (sends->second >= kAtItsLimit * limit->second) {
      return HeldBack{HeldBack::By::kLimit, link.from, ""};
    }
  }
  // All links of a path pass the same bytes in the end. The slowest is the one that needs the most
  // of the time for them.
  const PipelineLink* slowest = nullptr;
  for (const PipelineLink& link : links) {
    if (!link.bytes_per_second || link.network_share < kHoldsUp) continue;
    if (slowest == nullptr || *link.bytes_per_second / link.network_share <
                                  *slowest->bytes_per_second / slowest->network_share) {
      slowest = &link;
    }
  }
  if (slowest != nullptr) return HeldBack{HeldBack::By::kLink, slowest->from, slowest->to};
  if (!now.on_disk.empty()) return HeldBack{HeldBack::By::kDisk, *now.on_disk.begin(), ""};
  return std::nullopt;
}

void ProgressHistory::Add(const RunningRepair& repair) {
  if (repair.begin_at == TimePoint{}) return;
  if (marks_.empty() || attempt_ != repair.record.attempt) {
    attempt_ = repair.record.attempt;
    marks_.assign(1, {repair.begin_at, repair.begin_missing_bytes});
  }
  if (repair.heard_at > marks_.back().at) marks_.push_back({repair.heard_at, repair.missing_bytes});
  while (marks_.size() > 2 &&
         (marks_.back().at - marks_[1].at >= kWindow || marks_.size() > kMostMarks)) {
    marks_.pop_front();
  }
}

std::optional<double> ProgressHistory::Rate() const {
  if (marks_.size() < 2) return std::nullopt;
  const Mark& first = marks_.front();
  const Mark& last = marks_.back();
  const uint64_t done = first.missing_bytes - std::min(first.missing_bytes, last.missing_bytes);
  return static_cast<double>(done) / Seconds(last.at - first.at);
}

}  // namespace ecpipe
