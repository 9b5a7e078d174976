// SPDX-License-Identifier: Apache-2.0
// A small world around one tracker, for the exhaustive search: three helpers of which a plan needs
// one or two, a requestor or one or two hosts, two attempts, and few faults (a refusal, answers
// that are lost, a node that dies, a full journal or catalog). It knows what may happen next, and
// what must not.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model/fault.h"
#include "unit/coordinator/repairs/planned_path.h"
#include "unit/coordinator/repairs/tracker_limits.h"
#include "unit/coordinator/repairs/tracker_peek.h"

namespace ecpipe::search {

// A repair with its helpers, its journal and whoever ordered it.
class World {
 public:
  explicit World(const Limits& limits)
      : hosted_(limits.hosts > 0),
        faults_(limits.faults),
        ticks_(limits.ticks),
        checks_(limits.checks),
        helpers_(limits.helpers),
        attempts_(limits.attempts) {
    RepairRecord record;
    record.repair_id = kRepair;
    request_.block_ids = {"b0"};
    for (int i = 0; i < limits.hosts; ++i) request_.hosts.push_back(kHosts[static_cast<size_t>(i)]);
    if (limits.hosts > 1) request_.block_ids.emplace_back("b1");
    record.block_ids = request_.block_ids;
    record.hosts = request_.hosts;
    repair_.emplace(record, request_, now_, std::chrono::seconds(30));
    waiting_ = true;
    Hear(event::Begin{});
  }

  using Step = std::pair<std::string, std::function<void(World&)>>;
  std::vector<Step> Steps() const {
    std::vector<Step> steps;
    for (size_t i = 0; i < pending_.size(); ++i) AddAnswers(i, &steps);
    for (const auto& [part, state] : parts_) AddPartSteps(part, state, &steps);
    for (const auto& [part, status] : reports_) {
      steps.emplace_back("report of " + part.first, [part](World& world) { world.Deliver(part); });
    }
    if (faults_ > 0) {
      std::vector<std::string> nodes = {"h1", "h2"};
      nodes.insert(nodes.end(), request_.hosts.begin(), request_.hosts.end());
      for (const std::string& node : nodes) {
        if (dead_.contains(node)) continue;
        steps.emplace_back(node + " dies", [node](World& world) { world.Die(node); });
        if (ticks_ == 0) continue;  // which alone show it
        steps.emplace_back(node + " starts again", [node](World& world) {
          --world.faults_;
          ++world.starts_[node];
          world.Forget(node);
        });
      }
    }
    AddOrders(&steps);
    return steps;
  }

  std::string Key() const {
    std::ostringstream key;
    key << TrackerPeek::Key(*repair_, now_) << '|' << faults_ << ticks_ << checks_ << waiting_;
    key << cancelled_ << granted_.value_or(9) << resumed_ << ended_ << reported_lately_;
    key << in_journal_;
    for (const auto& [block, stored] : told_ends_) key << block << stored;
    for (const Action& action : pending_) {
      key << action.index();
      if (const auto* ask = std::get_if<action::AskParts>(&action)) {
        key << static_cast<int>(ask->question) << ask->attempt << ask->check.from_hosts.size();
      }
    }
    for (const auto& [part, state] : parts_) {
      key << part.first << part.second << static_cast<int>(state) << told_.contains(part);
    }
    for (const auto& [part, status] : reports_) key << 'r' << part.first << part.second << status;
    for (const std::string& node : dead_) key << 'd' << node;
    for (const auto& [node, starts] : starts_) key << 's' << node << starts;
    return key.str();
  }

  // Goes on without further faults. `lost`: the host's reports do not come, or the requestor is
  // silent.
  void RunToEnd(bool lost) {
    for (int step = 0; step < 200 && !(repair_->gone() && pending_.empty()); ++step) {
      if (!pending_.empty()) {
        std::vector<Step> answers;
        AddAnswers(0, &answers);
        answers[0].second(*this);
      } else if (!reports_.empty()) {
        const PartId part = reports_.begin()->first;
        if (lost && IsHost(part.first)) {
          reports_.erase(part);
        } else {
          Deliver(part);
        }
      } else if (granted_ && !hosted_ && !lost && !ended_) {
        Hear(event::Finish{{absl::OkStatus(), 1000}});
      } else if (!EndSomePart()) {
        Tick(std::chrono::seconds(31));
      }
    }
    Promise(repair_->gone(), "every repair ends");
    Promise(!waiting_, "every call is answered");
    Promise(!in_journal_, "the journal has no repair as running that has ended");
    for (const auto& [part, state] : parts_) {
      const bool over =
          state != Part::kRuns || told_.contains(part) || starts_.contains(part.first);
      Promise(over || repair_->record().state == RepairState::kDone,
              "no part of a failed repair runs on");
    }
    if (!hosted_ || !granted_) return;
    Promise(told_ends_.size() == request_.hosts.size(),
            "whoever ordered a hosted repair hears of the end of each block");
    for (const auto& [block, stored] : told_ends_) {
      Promise(stored == moved_.contains(block == "b0" ? 0 : 1), "what is told is true");
    }
  }

 private:
  bool IsHost(const std::string& node) const {
    return std::find(request_.hosts.begin(), request_.hosts.end(), node) != request_.hosts.end();
  }
  void AddAnswers(size_t i, std::vector<Step>* steps) const {
    const auto add = [&](const std::string& name, const std::function<Event(World&)>& answer) {
      steps->emplace_back(name, [i, answer](World& world) {
        const Event event = answer(world);
        world.pending_.erase(world.pending_.begin() + static_cast<ptrdiff_t>(i));
        world.Hear(event);
      });
    };
    const auto add_fault = [&](const std::string& name,
                               const std::function<Event(World&)>& answer) {
      if (faults_ == 0) return;
      add(name, [answer](World& world) {
        --world.faults_;
        return answer(world);
      });
    };
    const absl::Status full = absl::ResourceExhaustedError("full");
    const Action& action = pending_[i];
    if (const auto* plan = std::get_if<action::Plan>(&action)) {
      add("planned", [plan = *plan](World& world) {
        event::Planned planned = world.Planned(plan);
        if (!planned.plan.ok()) return planned;
        for (auto& [node, start] : planned.plan->incarnations) start = world.StartsOf(node);
        return planned;
      });
    } else if (std::holds_alternative<action::Journal>(action)) {
      const uint32_t attempt = std::get<action::Journal>(action).record.attempt;
      add("journaled", [attempt](World& world) {
        world.journaled_.insert(attempt);
        world.in_journal_ = true;
        return event::Journaled{};
      });
      add_fault("journal is full", [full](World&) { return event::Journaled{full}; });
    } else if (const auto* start = std::get_if<action::StartParts>(&action)) {
      add("started", [start = *start](World& world) { return world.Started(start, "", false); });
      for (const auto& handout : start->handouts) {
        for (const bool runs : {false, true}) {
          const std::string& node = handout.helper.node;
          add_fault(node + (runs ? " starts, its answer is lost" : " refuses"),
                    [start = *start, node, runs](World& world) {
                      return world.Started(start, node, runs);
                    });
        }
      }
    } else if (const auto* ask = std::get_if<action::AskParts>(&action)) {
      add("answered", [ask = *ask](World& world) { return world.Answered(ask, {}); });
      std::set<std::string> all;
      for (const HelperAddress& helper : ask->helpers) {
        all.insert(helper.node);
        add_fault(helper.node + "'s answer is lost", [ask = *ask, helper](World& world) {
          return world.Answered(ask, {helper.node});
        });
      }
      if (all.size() < 2) return;
      add_fault("all answers are lost",
                [ask = *ask, all](World& world) { return world.Answered(ask, all); });
    } else if (const auto* move = std::get_if<action::MoveBlock>(&action)) {
      add("moved", [row = move->row](World& world) {
        Promise(world.moved_.insert(row).second, "no row is granted twice");
        return event::Moved{row, absl::OkStatus()};
      });
      add_fault("catalog is full",
                [row = move->row, full](World&) { return event::Moved{row, full}; });
    } else if (const auto* attempt = std::get_if<action::TryPlan>(&action)) {
      add("tried", [check = attempt->check](World& world) {
        const auto planned = world.Planned({0, world.request_, check.left_out, {}});
        return event::Tried{check, planned.plan.ok()};
      });
    } else {
      add("next attempt", [](World&) { return event::NextAttempt{}; });
    }
  }

  void AddPartSteps(const PartId& part, Part state, std::vector<Step>* steps) const {
    if (state != Part::kRuns) return;
    steps->emplace_back(part.first + " is done", [part](World& world) {
      world.EndPart(part, Part::kDone, absl::OkStatus());
    });
    if (dead_.empty()) return;
    steps->emplace_back(part.first + " fails", [part](World& world) {
      world.EndPart(part, Part::kFailed,
                    WithFault(absl::UnavailableError("lost"), *world.dead_.begin()));
    });
  }

  // What whoever ordered the repair may do, and time.
  void AddOrders(std::vector<Step>* steps) const {
    const auto add = [&](const std::string& name, const std::function<void(World&)>& step) {
      steps->emplace_back(name, step);
    };
    if (ticks_ > 0) {
      for (const int seconds : {1, 31}) {
        add("tick " + std::to_string(seconds), [seconds](World& world) {
          --world.ticks_;
          world.Tick(std::chrono::seconds(seconds));
        });
      }
    }
    if (checks_ > 0 && granted_) {
      add("check", [](World& world) {
        --world.checks_;
        if (world.hosted_) return world.Hear(event::CheckHostedProgress{});
        world.Hear(event::CheckProgress{*world.granted_, 400, true});
      });
    }
    if (!cancelled_) {
      add("cancel", [](World& world) {
        world.cancelled_ = true;
        world.Hear(event::Finish{{absl::CancelledError("enough"), 0}});
      });
    }
    if (hosted_ || !granted_ || waiting_ || ended_) return;
    add("finish", [](World& world) { world.Hear(event::Finish{{absl::OkStatus(), 1000}}); });
    if (resumed_ == attempts_) return;
    add("resume", [](World& world) {
      ++world.resumed_;
      world.waiting_ = true;
      RepairRequest request = world.request_;
      request.left = {kPathGrid, {{5, 5, 1}}};
      const absl::Status failure = WithFault(absl::UnavailableError("lost"), "h1");
      world.Hear(event::Resume{request, {kRepair, *world.granted_, *request.left, "rp", failure}});
    });
  }

  // Helpers that are not left out, and as many attempts as there may be.
  event::Planned Planned(const action::Plan& plan) const {
    event::Planned planned{absl::FailedPreconditionError("too few"), plan.left_out, true};
    if (plan.attempt >= attempts_) return planned;
    while (true) {
      std::vector<std::string> nodes;
      for (const std::string& node : kHelpers) {
        if (nodes.size() < helpers_ && !planned.left_out.Has(node)) nodes.push_back(node);
      }
      if (nodes.size() == helpers_) {
        planned.plan = PlannedPath(kRepair, plan, nodes);
        return planned;
      }
      if (!planned.left_out.ReadmitOne()) return planned;
    }
  }

  event::Started Started(const action::StartParts& start, const std::string& refuses, bool runs) {
    event::Started started;
    for (const auto& handout : start.handouts) {
      const std::string& node = handout.helper.node;
      const bool refused = node == refuses || dead_.contains(node);
      if (!dead_.contains(node) && (!refused || runs)) {
        const PartId part{node, handout.part.attempt};
        parts_[part] = Part::kRuns;
        told_.erase(part);  // a word that came before the part
      }
      if (!refused) continue;
      started.failure = absl::UnavailableError("refused");
      started.refused[node] = started.failure;
    }
    return started;
  }

  event::Answered Answered(const action::AskParts& ask, const std::set<std::string>& lost) const {
    event::Answered answered{ask.question, ask.attempt, {}, ask.check};
    for (const HelperAddress& helper : ask.helpers) {
      answered.answers.emplace(helper.node, AnswerOf({helper.node, ask.attempt}, lost));
    }
    return answered;
  }
  absl::StatusOr<PartProgress> AnswerOf(const PartId& part,
                                        const std::set<std::string>& lost) const {
    if (dead_.contains(part.first)) return absl::UnavailableError("connection refused");
    if (lost.contains(part.first)) return absl::DeadlineExceededError("no answer");
    const auto found = parts_.find(part);
    if (found == parts_.end()) return absl::NotFoundError("no such part");
    PartProgress progress;
    progress.running = found->second == Part::kRuns;
    if (progress.running) {
      progress.hops = {HopProgress{.inputs = {{.node = "h1", .waiting = true}}}};
    }
    if (found->second == Part::kFailed || found->second == Part::kKept) {
      progress.ended = absl::UnavailableError("ended");
      progress.missing = {{5, 5, 1}};
    }
    return progress;
  }

  void EndPart(const PartId& part, Part state, const absl::Status& status) {
    parts_[part] = state;
    reports_[part] = status;
  }
  void Deliver(const PartId& part) {
    const auto report = reports_.extract(part);
    reported_.insert(part);
    reported_lately_ = true;
    Hear(event::Reported{part.first, part.second, report.mapped()});
  }
  bool EndSomePart() {
    for (const auto& [part, state] : parts_) {
      if (state != Part::kRuns) continue;
      const absl::Status lost = absl::UnavailableError("lost");
      if (dead_.empty()) {
        EndPart(part, Part::kDone, absl::OkStatus());
      } else {
        EndPart(part, Part::kFailed, WithFault(lost, *dead_.begin()));
      }
      return true;
    }
    return false;
  }
  void Die(const std::string& node) {
    --faults_;
    dead_.insert(node);
    Forget(node);
  }
  void Forget(const std::string& node) {
    std::erase_if(parts_, [&](const auto& part) { return part.first.first == node; });
    std::erase_if(reports_, [&](const auto& part) { return part.first.first == node; });
  }
  uint64_t StartsOf(const std::string& node) const {
    const auto starts = starts_.find(node);
    return 1 + (starts == starts_.end() ? 0 : starts->second);
  }
  void Tick(Duration step) {
    now_ += step;
    reported_lately_ = reported_lately_ && step < std::chrono::seconds(30);
    NodeLives lives;
    for (const std::string node : {"h1", "h2", "h3", "s", "t"}) {
      lives[node] = {
          .registered_here = true, .dead = dead_.contains(node), .incarnation = StartsOf(node)};
    }
    for (const PartId& part : to_cancel_) parts_.erase(part);
    Hear(event::Tick{&lives});
  }

  // ---- What is promised ------------------------------------------------------------------------

  void Hear(const Event& event) {
    const bool was_ended = ended_;
    const auto* const answered = std::get_if<event::Answered>(&event);
    const bool silence = answered != nullptr && answered->question == Question::kStillThere;
    for (const Action& action : repair_->On(event, now_)) {
      std::visit([this](const auto& done) { Check(done); }, action);
      const bool late = std::holds_alternative<action::Cancel>(action) ||
                        std::holds_alternative<action::Refuse>(action) ||
                        std::holds_alternative<action::Advise>(action) ||
                        std::holds_alternative<action::End>(action);
      Promise(!was_ended || late, "nothing is begun after the end");
      const bool awaited = std::holds_alternative<action::Plan>(action) ||
                           std::holds_alternative<action::Journal>(action) ||
                           std::holds_alternative<action::StartParts>(action) ||
                           std::holds_alternative<action::AskParts>(action) ||
                           std::holds_alternative<action::MoveBlock>(action) ||
                           std::holds_alternative<action::TryPlan>(action) ||
                           std::holds_alternative<action::Fault>(action);
      if (awaited) pending_.push_back(action);
    }
    Promise(!silence || !reported_lately_ || ended_ == was_ended,
            "a repair does not end of silence after a report");
  }
  template <typename Other>
  void Check(const Other&) {}
  void Check(const action::StartParts& start) {
    for (const auto& handout : start.handouts) {
      Promise(!hosted_ || journaled_.contains(handout.part.attempt),
              "the journal knows what stores a block");
      sent_.insert({handout.helper.node, handout.part.attempt});
    }
  }
  void Check(const action::MoveBlock& move) {
    Promise(!moved_.contains(move.row), "no row is granted by two attempts");
    for (const Action& action : pending_) {
      Promise(!std::holds_alternative<action::MoveBlock>(action), "rows move one at a time");
    }
  }
  void Check(const action::EndParts& end) {
    for (const HelperAddress& helper : end.helpers) End(helper.node, end.attempt, Part::kKept);
  }
  void Check(const action::Cancel& cancel) {
    for (const HelperAddress& helper : cancel.helpers) End(helper.node, cancel.attempt, {});
  }
  void Check(const action::CancelLater& cancel) {
    for (const HelperAddress& helper : cancel.helpers) {
      for (uint32_t attempt = 0; attempt <= cancel.attempt; ++attempt) {
        told_.insert({helper.node, attempt});
        to_cancel_.insert({helper.node, attempt});
      }
    }
  }
  void End(const std::string& node, uint32_t last, std::optional<Part> kept) {
    for (uint32_t attempt = 0; attempt <= last; ++attempt) {
      const PartId id{node, attempt};
      told_.insert(id);
      const auto part = parts_.find(id);
      if (part == parts_.end() || (kept && part->second != Part::kRuns)) continue;
      if (kept) {
        part->second = *kept;
      } else {
        parts_.erase(part);
      }
    }
  }
  // Whoever still has a part of an attempt up to this one knows that it is over. Not who has
  // started again: it has no part, or one that it was handed after the plan, which ends by itself.
  void CheckTold(uint32_t last) const {
    for (const PartId& part : sent_) {
      Promise(part.second > last || told_.contains(part) || reported_.contains(part) ||
                  dead_.contains(part.first) || starts_.contains(part.first),
              "cancelled attempts are told");
    }
  }
  void Check(const action::Grant& grant) {
    Promise(waiting_ || hosted_, "a grant answers a call");
    Promise(!ended_, "what has ended is not granted");
    Promise(!granted_ || *granted_ < grant.attempt, "an attempt is granted once");
    granted_ = grant.attempt;
    waiting_ = false;
    if (grant.attempt > 0) CheckTold(grant.attempt - 1);
  }
  void Check(const action::Refuse&) {
    Promise(waiting_, "a refusal answers a call");
    waiting_ = false;
  }
  void Check(const action::End& end) {
    Promise(ended_ == end.again, "a repair ends once");
    ended_ = true;
    in_journal_ = false;
    if (end.record.state != RepairState::kDone) return CheckTold(attempts_);
    Promise(!hosted_ || moved_.size() == request_.hosts.size(),
            "a hosted repair is done when its blocks have moved");
  }
  void Check(const action::TellEnd& tell) {
    Promise(
        ended_ && granted_ && told_ends_.emplace(tell.end.block_id, tell.end.status.ok()).second,
        "the end of a block is told once");
  }

  bool hosted_;
  int faults_;
  int ticks_;
  int checks_;
  size_t helpers_;
  uint32_t attempts_;
  TimePoint now_{};
  RepairRequest request_;
  std::optional<RepairTracker> repair_;
  std::vector<Action> pending_;  // to be answered
  std::map<PartId, Part> parts_;
  std::map<PartId, absl::Status> reports_;  // under way
  std::map<std::string, uint64_t> starts_;  // after the first, by node
  std::set<std::string> dead_;
  std::set<PartId> to_cancel_;
  std::set<uint32_t> journaled_;
  std::set<PartId> sent_;
  std::set<PartId> told_;  // that their part is over
  std::set<PartId> reported_;
  std::set<Row> moved_;
  std::optional<uint32_t> granted_;
  uint32_t resumed_ = 0;
  bool waiting_ = false;  // a call has no answer yet
  bool cancelled_ = false;
  bool in_journal_ = false;  // as running
  bool ended_ = false;
  bool reported_lately_ = false;           // within the time after which silence ends a repair
  std::map<std::string, bool> told_ends_;  // by block id: whether it is stored
};

}  // namespace ecpipe::search
