// SPDX-License-Identifier: Apache-2.0
// What the tracker of a repair hears, and what it wants done: values that do nothing. A script of
// tests/script/repairs is a list of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/planning/lane_watch.h"
#include "coordinator/planning/repair_planner.h"
#include "coordinator/repairs/diagnosis.h"
#include "coordinator/repairs/helper_gateway.h"
#include "coordinator/repairs/left_out.h"
#include "coordinator/repairs/slow_helpers.h"
#include "model/checksum_kind.h"
#include "model/plan/repair_plan.h"
#include "model/repair.h"

namespace ecpipe {

// A plan, and the parts that its nodes are to run.
struct PlannedAttempt {
  PlannedRepair planned;
  std::vector<HelperGateway::Handout> handouts;
  RepairPart requestor_part;                     // empty if helpers store the blocks
  std::map<std::string, uint64_t> incarnations;  // of the helpers
  std::string stripe_digest;                     // RepairGrant's
};

// How the repair of a block that a helper stores has ended.
struct HostedEnd {
  uint64_t recovery_id = 0;
  std::string block_id;
  absl::Status status;
};

// A node has ended its part of a repair whose blocks helpers store; other parts may still run.
struct HostedPartEnd {
  uint64_t recovery_id = 0;
  std::string block_id;  // the first block of the repair
  std::string node;
};

// Why helpers are asked about their parts.
enum class Question {
  kWhoFailed,    // the attempt has failed
  kWhatIsLeft,   // the hosts of a failed attempt, whose parts have been ended
  kStillThere,   // hosts have been silent for long
  kAnyProgress,  // the attempt runs; see ProgressCheck
};

// A check of a running attempt, on its way through questions and plans.
struct ProgressCheck {
  uint32_t attempt = 0;
  bool quiet = false;  // no bytes came since the check before
  Milestone now;
  // For hosted repairs: whether all helpers are asked at once, and otherwise who is asked when the
  // hosts have answered, and what these answered.
  bool all_asked = false;
  std::vector<HelperAddress> hosts;
  std::vector<HelperAddress> others;
  PartAnswers from_hosts;
  // For a requestor's small read: what all answered, when one of them was late.
  PartAnswers first_look;
  // The nodes that the next attempt would leave out, and the history that it would have.
  LeftOut left_out;
  SpeedHistory speed;
  // Of a plan whose lanes are watched: until its end as it goes on, and what the next attempt would
  // know of links. Empty: it is not about that.
  double seconds_left = 0;
  SeenLinks seen;
};

namespace event {
struct Begin {};
// `left_out` no longer has the nodes that the plan takes back. `gathered`: all nodes of the stripe
// have registered, or have had the time.
struct Planned {
  absl::StatusOr<PlannedAttempt> plan;
  LeftOut left_out;
  bool gathered = true;
};
struct Journaled {
  absl::Status status;
};
// All have answered, or have run out of time.
struct Started {
  absl::Status failure;                         // the first refusal
  std::map<std::string, absl::Status> refused;  // by node
  std::set<std::string> late;                   // the node that was not waited for
  std::optional<ChecksumKind> checksum;
};
// A node tells how its part has ended.
struct Reported {
  std::string node;
  uint32_t attempt = 0;
  absl::Status status;
};
// The requestor tells that an attempt has failed. `request` has what is missing.
struct Resume {
  RepairRequest request;
  ResumePoint from;
};
// The answer to Fault: there is a thread that can wait for helpers.
struct NextAttempt {};
struct Answered {
  Question question;
  uint32_t attempt = 0;
  PartAnswers answers;
  ProgressCheck check;
};
struct Moved {
  Row row = 0;
  absl::Status status;
};
// The requestor lacks so many bytes of each block. `quiet`: none came for a while.
struct CheckProgress {
  uint32_t attempt = 0;
  uint64_t missing_bytes = 0;
  bool quiet = false;
};
// It is time to check a hosted repair.
struct CheckHostedProgress {};
// The answer to TryPlan. check.left_out has lost the nodes that were taken back because there are
// too few others. `possible`: the attempt is to make way for the next one, since there is a plan
// without the nodes that are still left out, or since no bytes come and there is nothing to wait
// for.
struct Tried {
  ProgressCheck check;
  bool possible = false;
  double seconds = 0;  // that the plan is expected to take, for all that its request lacks
};
struct Finish {
  RepairVerdict verdict;
};
struct CancelHosted {
  absl::Status status;
};
// Time has passed. `nodes` has to live until On returns; no tracker keeps it.
struct Tick {
  const NodeLives* nodes = nullptr;
};
// A hosted repair was found in the journal.
struct Adopted {};
}  // namespace event

using Event =
    std::variant<event::Begin, event::Planned, event::Journaled, event::Started, event::Reported,
                 event::Resume, event::NextAttempt, event::Answered, event::Moved,
                 event::CheckProgress, event::CheckHostedProgress, event::Tried, event::Finish,
                 event::CancelHosted, event::Tick, event::Adopted>;

namespace action {
// Answered by Planned.
struct Plan {
  uint32_t attempt = 0;
  RepairRequest request;
  LeftOut left_out;
  absl::Status after;  // the failure after which the repair goes on
};
// Answered by Journaled.
struct Journal {
  RepairRecord record;
};
// Answered by Started.
struct StartParts {
  std::vector<HelperGateway::Handout> handouts;
  std::optional<Duration> straggler_after = std::nullopt;  // as in HelperGateway
};
// Answered by Answered. A helper without an address is asked where it is now.
struct AskParts {
  Question question;
  uint32_t attempt = 0;
  std::vector<HelperAddress> helpers;
  ProgressCheck check;
  std::optional<Duration> straggler_after = std::nullopt;
};
// Has helpers end their parts and keep what they have stored, for the next attempt.
struct EndParts {
  uint32_t attempt = 0;
  std::vector<HelperAddress> helpers;
};
// Has helpers end their parts of all attempts up to this one, and keep nothing.
struct Cancel {
  uint32_t attempt = 0;
  std::vector<HelperAddress> helpers;
};
// The same, when there is time: these parts end by themselves unless a node hangs.
struct CancelLater {
  uint32_t attempt = 0;
  std::vector<HelperAddress> helpers;
};
// Answered by Moved: the catalog has the block's new place.
struct MoveBlock {
  Row row = 0;
  std::string block_id;
  std::string host;
};
// Answered by Tried.
struct TryPlan {
  RepairRequest request;
  ProgressCheck check;
};
// For whoever began or resumed the repair.
struct Grant {
  uint32_t attempt = 0;
  RepairRequest request;
  uint64_t bytes = 0;  // of the range of each block
  RepairGrant grant;
};
struct Refuse {
  absl::Status status;
};
// For whoever asked for the check.
struct Advise {
  ProgressAdvice advice;
};
// Another attempt may mend the failed one: NextAttempt is due, from a thread that may wait.
struct Fault {};
// The repair has brought wrong bytes of these blocks, and nobody has named whose fault it is: what
// these nodes have of the stripe is to be checked.
struct Doubt {
  std::vector<std::string> block_ids;
  std::set<std::string> nodes;
  std::string reason;
};
// The repair has ended; the record says how. `again`: the journal may have forgotten it.
struct End {
  RepairRecord record;
  bool again = false;
};
// For whoever ordered a hosted repair.
struct TellEnd {
  HostedEnd end;
};
struct TellPartEnd {
  HostedPartEnd end;
};
}  // namespace action

using Action =
    std::variant<action::Plan, action::Journal, action::StartParts, action::AskParts,
                 action::EndParts, action::Cancel, action::CancelLater, action::MoveBlock,
                 action::TryPlan, action::Grant, action::Refuse, action::Advise, action::Fault,
                 action::Doubt, action::End, action::TellEnd, action::TellPartEnd>;
using Actions = std::vector<Action>;

}  // namespace ecpipe
