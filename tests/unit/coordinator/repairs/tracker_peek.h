// SPDX-License-Identifier: Apache-2.0
// The state of a tracker as a string, for the exhaustive search, which visits each state once.
#pragma once

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <variant>

#include "coordinator/repairs/tracker.h"

namespace ecpipe {

// All that decides what a tracker does next.
struct TrackerPeek {
  static std::string Key(const RepairTracker& repair, TimePoint now) {
    std::ostringstream key;
    const auto age = [&](TimePoint at) { return std::min(31.0, Seconds(now - at)); };
    const auto names = [&](const auto& all) {
      for (const auto& one : all) key << one << ',';
      key << ';';
    };
    const auto reasons = [&](const LeftOut& left_out) {
      for (const auto& [node, reason] : left_out.reasons()) key << node << reason.size() << ',';
      key << ';';
    };
    key << repair.phase_.index() << repair.awaiting_ << repair.granted_;
    key << repair.record_.attempt << RepairStateName(repair.record_.state);
    key << ' ' << repair.failed_attempts_ << ' ' << repair.bound_.in_vain();
    key << ' ' << repair.least_left_ << ' ' << repair.least_heard_;
    names(repair.record_.moved);
    names(repair.attempt_.unreported);
    reasons(repair.left_out_);
    key << age(repair.last_news_) << repair.attempt_.quiet.has_value();
    key << std::min(0.5, Seconds(now - repair.attempt_.quiet_at));
    for (const HelperAddress& helper : repair.attempt_.helpers) key << helper.node;
    for (const auto& [node, start] : repair.attempt_.incarnations) key << start;
    if (const auto* hosts = repair.hosts()) {
      names(hosts->to_move);
      key << hosts->moving << hosts->failure << hosts->consequence << hosts->may_go_on;
      key << age(hosts->checked_at) << age(hosts->all_checked_at)
          << hosts->received_bytes.value_or(99);
    }
    if (const auto* planning = std::get_if<RepairTracker::Planning>(&repair.phase_)) {
      key << planning->handouts_left;
    }
    if (const auto* handed = std::get_if<RepairTracker::HandingOut>(&repair.phase_)) {
      key << handed->handouts_left;
      reasons(handed->tried);
    }
    if (const auto* resuming = std::get_if<RepairTracker::Resuming>(&repair.phase_)) {
      key << resuming->failure;
      for (const auto& [node, why] : resuming->suspects) key << node << why.certain;
    }
    return key.str();
  }
};

}  // namespace ecpipe
