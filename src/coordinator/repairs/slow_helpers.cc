// SPDX-License-Identifier: Apache-2.0
#include "coordinator/repairs/slow_helpers.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace ecpipe {
namespace {

// Of either kind: bounded, since it may be the wrong node that is left out.
constexpr int kMaxChangesForSpeed = 2;
// What it costs to begin again: planning, handing out, and the path filling up.
constexpr double kRestartSeconds = 0.3;
constexpr double kWorthIt = 0.6;              // of the time that is left
constexpr double kWorthGuessingSeconds = 10;  // that are left
// A look may miss a slow link that others hide, or see one where the machine was busy. So a plan is
// weighed anew again and again, but ever less often, and attempts are left for nodes that fail.
constexpr int kMaxWeighedChanges = 6;
constexpr Duration kFirstPause = std::chrono::seconds(1);  // the next look

}  // namespace

Suspects SpeedHistory::WhoIsTooSlow(const PartAnswers& answers, const Milestone& begin,
                                    const Milestone& now, std::optional<Milestone>* last_seen) {
  Suspects suspects;
  const std::optional<Milestone> last = *last_seen;
  const auto slow_links = [&](double best_pace) {
    return WhichIsSlow(now.sent, last ? &last->sent : nullptr,
                       Seconds(now.at - (last ? last->at : begin.at)), best_pace);
  };
  SlowLinks slow = slow_links(best_pace_);
  if (slow.telling && AllTell(answers)) *last_seen = now;
  const bool guess = best_pace_ == 0 || slow.ends.empty();
  if (guess && best_pace_ > 0) slow = slow_links(0);
  best_pace_ = std::max(best_pace_, slow.pace);
  int& changes = guess ? guessed_changes_ : known_changes_;
  if (slow.ends.empty() || changes >= kMaxChangesForSpeed) return suspects;
  // Large slices come seldom: if none did meanwhile, all that came counts.
  const Milestone& since = last && now.missing_bytes < last->missing_bytes ? *last : begin;
  if (now.missing_bytes >= since.missing_bytes) return suspects;
  const double rest = Seconds(now.at - since.at) * static_cast<double>(now.missing_bytes) /
                      static_cast<double>(since.missing_bytes - now.missing_bytes);
  const double rest_without = rest / slow.speedup + kRestartSeconds;
  if (rest_without > kWorthIt * rest || (guess && rest < kWorthGuessingSeconds)) return suspects;
  // The node that slow links have in common, now and when plans were changed before; of equals a
  // sender.
  for (const auto& [node, count] : slow.ends) slow_ends_[node] += count;
  std::string slowest = slow.sender;
  for (const auto& [node, count] : slow.ends) {
    if (slow_ends_[node] > slow_ends_[slowest]) slowest = node;
  }
  if (answers.contains(slowest)) {
    suspects[slowest] = {
        absl::StrFormat("its links are %.1f times slower than the others", slow.speedup),
        /*certain=*/false, /*other_end=*/"", /*slow=*/true};
    ++changes;
  }
  return suspects;
}

bool SpeedHistory::IsWorthPlanningAnew(TimePoint now, double seconds_left, double seconds_anew) {
  if (weighed_changes_ >= kMaxWeighedChanges || now < next_weighing_) return false;
  if (seconds_anew + kRestartSeconds > kWorthIt * seconds_left) return false;
  next_weighing_ = now + kFirstPause * (1 << weighed_changes_++);
  return true;
}

}  // namespace ecpipe
