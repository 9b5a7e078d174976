// SPDX-License-Identifier: Apache-2.0
// Follows one repair from its plan to its end: it hears what happened, and says what is to be done.
// Pure: no lock, no clock, no call. RepairCoordinator does what it says and tells it what came of
// it. docs/design/008-attempts.md has the reasoning.
//
//   Planning --> HandingOut --> Running --------------------> Ended
//      ^  ^          |             |  \ hosted: a fault
//      |  '----------' refused     |   '--> Failed
//      |                           v          | NextAttempt
//      '----------------------- Resuming <----'
//   SetAside: a resumed repair that waits for helpers to register, until its requestor asks again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/clock.h"
#include "coordinator/repairs/tracker_events.h"
#include "model/attempt_bound.h"

namespace ecpipe {

// The number of streams that running repairs send over the network.
struct SendingStreams {
  uint64_t of_node = 0;
  uint64_t of_all = 0;
};

// A repair that has not ended, as people see it.
struct RunningRepair {
  RepairRecord record;
  std::string phase;  // "planning", "starting", "running", "failed", "resuming", "set-aside"
  bool background = false;
  // Of each block, as far as the coordinator has heard; the word is `heard_at` old.
  uint64_t whole_bytes = 0;  // 0: not planned yet, or planned by an earlier coordinator
  uint64_t missing_bytes = 0;
  TimePoint heard_at{};
  // The attempt that runs: what was missing at its begin, when that was, and who takes part.
  uint64_t begin_missing_bytes = 0;
  TimePoint begin_at{};
  std::vector<HelperAddress> helpers;
  Receivers receivers;
};

absl::Status WaitsForHelpers(const absl::Status& why);

class RepairTracker {
 public:
  // How often the progress of the first attempt of a hosted repair is checked.
  static constexpr Duration kCheckHostsEvery = std::chrono::milliseconds(500);
  // The numbers of attempts, handouts that were refused included, end here, whatever they bring. A
  // failed one takes a second or so: half a day of failures.
  static constexpr uint32_t kMaxAttempts = 1 << 16;

  // A repair is over if all its parts have ended and its requestor, or a helper that stores one of
  // its blocks, is silent for `abandon_after`. The first event is Begin.
  RepairTracker(RepairRecord record, RepairRequest request, TimePoint now, Duration abandon_after);
  // A hosted repair that ran when an earlier coordinator stopped; nobody knows who took part. The
  // first event is Adopted.
  static RepairTracker Adopt(RepairRecord record, TimePoint now, Duration abandon_after);
  // A requestor's repair, in the same case. The first event is Resume.
  static RepairTracker TakeUp(RepairRecord record, RepairRequest request, LeftOut left_out,
                              TimePoint now, Duration abandon_after);

  // What is to be done, in this order. Actions that are answered by an event are answered once,
  // also after the repair has ended.
  Actions On(Event event, TimePoint now);

  const RepairRecord& record() const { return record_; }
  RunningRepair View() const;
  bool background() const { return attempt_.request.background; }
  bool hosted() const { return std::holds_alternative<ForHosts>(kind_); }
  bool ended() const { return Is<Ended>(); }
  // It has ended, and no answer is under way.
  bool gone() const { return ended() && !awaiting_; }
  // Whether it waits for its requestor to resume it. It keeps no node busy then.
  bool set_aside() const { return Is<SetAside>(); }
  bool IsCheckDue(TimePoint now) const;
  // The streams that each node sends whose part runs; none once the repair has ended.
  std::map<std::string, uint64_t> Streams() const;

  // Takes the word that a block which is not in the catalog is corrupt, and returns where it was
  // read. A `node` that says so of its own block is believed. Without a node it is the place that
  // was read last. Empty: it was not read there.
  std::string NoteCorrupt(const std::string& block_id, const std::string& node);
  // The node's block does not fit the others. Whatever comes of that, this repair does without it.
  void LeaveOut(const std::string& node, const std::string& reason) {
    left_out_.Refuse(node, reason);
  }
  // Whether this replica's own helper found it corrupt.
  bool FoundCorrupt(const std::string& block_id, const std::string& node) const;
  const std::optional<StripeFacts>& facts() const { return attempt_.request.facts; }

 private:
  friend struct TrackerPeek;  // for the exhaustive search, which knows states again

  // A requestor takes the bytes, and says how the repair ended.
  struct ForRequestor {};
  // Helpers store the blocks. The repair ends by itself.
  struct ForHosts {
    // Rows that the hosts report as stored; the catalog does not know them yet (record.moved has
    // those that it knows).
    std::set<Row> to_move;
    bool moving = false;  // the catalog or the journal is being told of a row
    absl::Status failure;
    // An error of a node whose receiver left. That node does not know why; another one will tell
    // the failure, or if none does, this is it.
    absl::Status consequence;
    bool may_go_on = true;  // whether another attempt may mend a failure
    // The latest check, and the latest one at which all helpers were asked; before the first check,
    // when the parts of the attempt started.
    TimePoint checked_at;
    TimePoint all_checked_at;
    // What the hosts had received at the latest check; empty if one of them did not answer.
    std::optional<uint64_t> received_bytes;
  };

  struct Planning {
    RepairRequest request;
    uint32_t attempt = 0;
    uint32_t handouts_left = 0;  // that may fail without news, this one included
  };
  struct HandingOut {
    PlannedAttempt plan;
    uint32_t handouts_left = 0;
    LeftOut tried;  // left_out_ without the nodes that the plan takes back
    bool gathered = true;
  };
  struct Running {};
  // A hosted repair that waits for NextAttempt.
  struct Failed {};
  struct Resuming {
    RepairRequest request;  // what is missing
    absl::Status failure;
    Suspects suspects;
  };
  struct SetAside {};
  struct Ended {};

  // The latest attempt that was planned.
  struct Attempt {
    RepairRequest request;
    std::vector<HelperAddress> helpers;  // empty if an earlier coordinator chose them
    std::set<std::string> unreported;    // nodes whose part has not ended
    Receivers receivers;
    std::map<std::string, uint64_t> incarnations;  // of the helpers when they were chosen
    SliceGrid grid;
    uint32_t sub_blocks = 1;  // of each block; each has the grid
    uint64_t whole_bytes() const { return grid.bytes * sub_blocks; }
    Milestone begin;
    // What each block lacked when the receivers last told.
    TimePoint heard_at{};
    uint64_t missing_bytes = 0;
    std::optional<Milestone> milestone;  // from the latest check that showed speeds of links
    // Answers at the latest check, if no bytes came then, or at one a moment before it.
    std::optional<PartAnswers> quiet;
    TimePoint quiet_at{};
    bool small_read = false;  // somebody waits for a small range, and little is lost by a new plan
    WatchedLanes lanes;
  };
  // The helpers of an attempt: hosts that still have a row to store, and the others.
  struct Sides {
    std::vector<HelperAddress> hosts;
    std::vector<HelperAddress> others;
  };

  template <typename Phase>
  bool Is() const {
    return std::holds_alternative<Phase>(phase_);
  }
  // An answer comes only in the phase that awaits it, or after the end.
  template <typename Phase>
  Phase& PhaseAs() {
    ECPIPE_CHECK(Is<Phase>());
    return std::get<Phase>(phase_);
  }
  ForHosts* hosts() { return std::get_if<ForHosts>(&kind_); }
  const ForHosts* hosts() const { return std::get_if<ForHosts>(&kind_); }
  void Emit(Action action) { out_.push_back(std::move(action)); }
  // The same for an action that has to be answered before the repair goes on.
  void Await(Action action);

  void Hear(event::Begin& begin);
  void Hear(event::Planned& planned);
  void Hear(event::Journaled& journaled);
  void Hear(event::Started& started);
  void Hear(event::Reported& reported);
  void Hear(event::Resume& resume);
  void Hear(event::NextAttempt& next);
  void Hear(event::Answered& answered);
  void Hear(event::Moved& moved);
  void Hear(event::CheckProgress& asked);
  void Hear(event::CheckHostedProgress& check);
  void Hear(event::Tried& tried);
  void Hear(event::Finish& finish);
  void Hear(event::CancelHosted& cancel);
  void Hear(event::Tick& tick);
  void Hear(event::Adopted& adopted);
  // An answer comes after the end.
  void HearTooLate(const Event& event);

  // tracker_attempts.cc
  // The attempts from `first` on: those of the begin, or those after a failure.
  void PlanAttempts(uint32_t first, RepairRequest request, const absl::Status& after);
  void Plan(Planning planning, const absl::Status& after);
  // Counts the attempt that ran and has failed. `missing` is what is left to bring.
  void CountFailed(const SlicesLeft& missing);
  // Starts the attempt after a failed one, without the suspects. `request` says what is missing.
  void PlanNextAttempt(RepairRequest request, const Suspects& suspects,
                       const absl::Status& failure);
  void BeginAttempt(const PlannedAttempt& plan, RepairRequest request);
  bool IsSmallRead(const PlannedRepair& planned, const RepairRequest& request) const;
  // How long a handout waits for a helper that is later than all others; nothing: as for all.
  std::optional<Duration> PatienceWithOne(const HandingOut& handing_out) const;
  // The same for the answers about the attempt's parts.
  std::optional<Duration> PatienceWithAnAnswer() const;
  // Returns whether a node has to be left out that was not before.
  bool HearRefused(const std::map<std::string, absl::Status>& refused);
  void HearLate(const std::set<std::string>& late);
  // No plan, or no attempt more.
  void GiveUp(const absl::Status& status, bool gathered, const RepairRequest& request);
  void EndFailed(const absl::Status& status);
  void End(RepairState state, const std::string& detail);
  void EndForRequestor(const RepairVerdict& verdict);
  // After the end check: has the survivors of the attempt checked, unless one has been named.
  void DoubtSurvivors(const absl::Status& status);
  void CancelParts() { Emit(action::Cancel{record_.attempt, attempt_.helpers}); }
  // Why no report of the node's part can come any more; empty if one may come.
  std::string GoneBecause(const std::string& node, const NodeLives& nodes) const;
  void EndIfAbandoned(const NodeLives& nodes);

  // tracker_hosts.cc
  // The row that the node still has to store, if it is a host.
  std::optional<Row> RowToStore(const std::string& node) const;
  // Whether all hosts have reported that their blocks are stored. One may do so before its answer
  // to the handout comes.
  bool AllAreStored() const;
  std::set<std::string> HostsAtWork() const;
  Sides SidesOf(const std::vector<HelperAddress>& helpers) const;
  // Acts on the reports of a hosted repair: moves stored blocks, ends the attempt or the repair.
  void Advance();
  void AdvanceAfter(const absl::Status& stored);
  void FailAttempt(const absl::Status& status);
  void EndHosted(const absl::Status& status);
  void ContinueFrom(const PartAnswers& hosts_have);
  void HearSilentHosts(const PartAnswers& answers);
  void EndIfHopeless(const NodeLives& nodes);
  std::string SilentHosts() const;

  // tracker_progress.cc
  void NoteMissing(uint64_t bytes);
  void HearCheck(ProgressCheck check, PartAnswers answers);
  // Of a small read, where one helper is late to answer.
  void LookAgain(ProgressCheck check, PartAnswers answers);
  void FindSuspects(ProgressCheck check, PartAnswers answers);
  // Of an attempt whose lanes are watched.
  void LookForSlowerLinks(ProgressCheck check, const PartAnswers& answers);
  void HearTriedAnew(event::Tried& tried);
  // Has the next attempt begin.
  void GiveWay(std::string reason);
  // Whether one of these nodes takes part now.
  bool LeavesOutAHelper(const LeftOut& left_out) const;
  bool IsOf(const ProgressCheck& check) const {
    return Is<Running>() && check.attempt == record_.attempt;
  }
  void Advise(ProgressAdvice advice);

  RepairRecord record_;
  Duration abandon_after_;
  std::variant<ForRequestor, ForHosts> kind_;
  std::variant<Planning, HandingOut, Running, Failed, Resuming, SetAside, Ended> phase_;
  bool awaiting_ = false;
  bool granted_ = false;  // whoever began the repair has its answer
  Attempt attempt_;
  LeftOut left_out_;  // from all attempts
  AttemptBound bound_;
  uint32_t failed_attempts_ = 0;  // that ran
  // The least that was missing of each block, as ends of attempts and as checks have told. A list
  // of many holes names some slices that are there, so the two are not compared with each other.
  uint64_t least_left_ = UINT64_MAX;
  uint64_t least_heard_ = UINT64_MAX;
  bool had_late_ = false;  // a handout did not wait for one of its helpers; the next ones do
  SpeedHistory speed_;
  SeenLinks seen_;  // links that were slower than a plan counted on
  TimePoint last_news_;
  // For a stripe that is not in the catalog: where attempts have read; the latest at the end.
  std::vector<BlockPlace> places_;
  // Block ids and nodes: the replicas of these that their own helpers found corrupt.
  std::set<std::pair<std::string, std::string>> found_corrupt_;

  // While an event is heard.
  TimePoint now_;
  Actions out_;
};

}  // namespace ecpipe
