// SPDX-License-Identifier: Apache-2.0
// Decides that a helper of a repair is so slow that the repair is better planned without it. Pure.
// docs/design/008-attempts.md has the reasoning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "coordinator/repairs/diagnosis.h"

namespace ecpipe {

// How far an attempt had come at some time.
struct Milestone {
  TimePoint at;
  uint64_t missing_bytes = 0;  // of each block
  Sent sent;
};

// What all attempts of a repair have shown of its speed.
class SpeedHistory {
 public:
  // The helper of a running attempt that is worth leaving out, if there is one. `last` is the
  // latest milestone at which a slow link would have stood out; the links are judged by the time
  // since then, or since `begin`, and it moves to `now`.
  Suspects WhoIsTooSlow(const PartAnswers& answers, const Milestone& begin, const Milestone& now,
                        std::optional<Milestone>* last);
  // Whether what is missing, planned anew, would bring the end clearly sooner than going on, a new
  // beginning included. The change counts as made `now`; the next one has to wait, each twice as
  // long as the one before. Six are made at most.
  bool IsWorthPlanningAnew(TimePoint now, double seconds_left, double seconds_anew);
  // Takes the best pace of a history that saw more. The rest counts only if the plan was changed.
  void TakePace(const SpeedHistory& other) { best_pace_ = other.best_pace_; }

 private:
  double best_pace_ = 0;  // 0: not known yet
  // For each node: the number of slow links that it was at when the plan was changed.
  std::map<std::string, int> slow_ends_;
  int known_changes_ = 0;      // changes of plan because the repair had been faster
  int guessed_changes_ = 0;    // changes of plan because other links looked faster
  int weighed_changes_ = 0;    // changes of plan because links were slower than the plan counted on
  TimePoint next_weighing_{};  // no such change before then
};

}  // namespace ecpipe
