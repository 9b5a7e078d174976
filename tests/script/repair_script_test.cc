// SPDX-License-Identifier: Apache-2.0
// Runs repairs/*.txt: stories of repairs, in which each line is an event and the lines after it
// that begin with ">" are what the tracker wants done. Blank lines and lines that begin with "#"
// stay as they are. The events, in words of one line each:
//   repair b0[,b1] for r | hosted by s[,t] [of recovery 7]
//   adopt b0[,b1] hosted by s[,t] [of recovery 7]     found in the journal after a restart
//   resume after ATTEMPT from SLICE: FAULT            its requestor has all slices before SLICE
//   take up after ATTEMPT from SLICE: FAULT           the same after a restart
//   planned h1 h2 h3 [too early]
//   planned a read of BYTES at h1 h2 h3               of a block of 4 MiB
//   planned SLICES of h1 h2, SLICES of h3 h4 in SECONDS
//   no plan [too early]
//   journaled | journal is full
//   started [but h2 refuses | but h2 is late]
//   moved | catalog is full
//   NODE ended: HOW
//   next attempt
//   answers NODE HOW, NODE HOW, ...                   all others that are asked run, and wait
//   check [quiet] [missing BYTES] | check hosts
//   tried [in vain | in SECONDS]
//   tick [NODE died | NODE restarted | NODE has not registered]
//   finish ok | finish half | finish wrong | finish cancelled
//   cancel the recovery
// HOW is stored, wrong (its SHA-256), runs, stuck (it runs and tells nothing), passed BYTES (to
// it), sent BYTES in SECONDS (of the network), sent LANE:RECEIVER:BYTES:SECONDS [LANE:...] (from
// the lane's hop 0), unreachable, silent, forgot, lost NODE, keeps from SLICE, broke, corrupt or
// failed. FAULT is lost NODE or nobody. An event may begin with +SECONDS: time passes.
// ECPIPE_UPDATE_SCRIPTS=1 writes what came out back into the files, for a person to read and judge.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/status.h"
#include "coordinator/repairs/tracker.h"
#include "model/fault.h"
#include "script/script_names.h"
#include "unit/coordinator/repairs/planned_path.h"

namespace ecpipe::repair_script_test {
namespace {

constexpr RepairId kRepair = 1;
constexpr Duration kAbandonAfter = std::chrono::seconds(30);

std::vector<std::string> Split(const std::string& text, char by) {
  std::vector<std::string> items;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, by);) {
    const size_t begin = item.find_first_not_of(' ');
    if (begin != std::string::npos) items.push_back(item.substr(begin));
  }
  return items;
}

// What stands after `word` in the text, up to the next blank unless `rest`; empty if it is not
// there.
std::string After(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return "";
  std::string item;
  std::istringstream(text.substr(at + word.size())) >> item;
  return item;
}

bool Says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

absl::Status LostNode(const std::string& node) {
  return WithFault(absl::UnavailableError("node " + node + " closed the stream"), node);
}

absl::Status FaultNamed(const std::string& text) {
  if (Says(text, "lost ")) return LostNode(After(text, "lost "));
  return absl::UnavailableError("the stream broke");
}

// ---- What an answer of a helper says --------------------------------------------------------

PartProgress Running(const std::string& node, uint64_t bytes) {
  PartProgress part{.running = true, .ended = {}, .hops = {HopProgress{}}};
  part.hops[0].inputs = {{.node = "before " + node, .bytes = bytes, .waiting = true}};
  return part;
}

PartProgress EndedWith(const absl::Status& status) {
  return {.running = false, .ended = status, .hops = {}};
}

PartProgress SendingOnLanes(const std::string& streams) {
  PartProgress part{.running = true, .ended = {}, .hops = {}};
  for (const std::string& stream : Split(streams, ' ')) {
    const std::vector<std::string> words = Split(stream, ':');
    HopProgress& hop = part.hops.emplace_back();
    hop.lane = static_cast<uint32_t>(std::stoul(words[0]));
    hop.outputs = {
        {.node = words[1], .bytes = std::stoull(words[2]), .network_seconds = std::stod(words[3])}};
  }
  return part;
}

absl::StatusOr<PartProgress> HowNamed(const std::string& node, const std::string& how) {
  if (how == "stored") return EndedWith(absl::OkStatus());
  if (how == "wrong") return EndedWith(absl::DataLossError("its SHA-256"));
  if (how == "unreachable") return absl::UnavailableError("connection refused");
  if (how == "silent") return absl::DeadlineExceededError("no answer");
  if (how == "forgot") return absl::NotFoundError("no such part");
  if (how == "stuck") return PartProgress{.running = true, .ended = {}, .hops = {}};
  if (how == "failed") return EndedWith(absl::UnavailableError("its receiver left"));
  if (how == "broke") {
    return EndedWith(WithFault(absl::ResourceExhaustedError("disk full"), kFaultSelf));
  }
  if (how == "corrupt") {
    return EndedWith(WithFault(absl::DataLossError("bad checksum"), kFaultSelf));
  }
  if (Says(how, "lost ")) return EndedWith(LostNode(After(how, "lost ")));
  if (Says(how, "keeps from ")) {
    PartProgress part = EndedWith(absl::CancelledError("ended"));
    const auto from = static_cast<uint32_t>(std::stoul(After(how, "keeps from ")));
    part.missing = {{from, 10 - from, 1}};
    return part;
  }
  if (Says(how, "sent ") && Says(how, ":")) return SendingOnLanes(how.substr(5));
  if (Says(how, "sent ")) {
    PartProgress part = Running(node, 0);
    part.hops[0].outputs = {{.node = "after " + node,
                             .bytes = std::stoull(After(how, "sent ")),
                             .network_seconds = std::stod(After(how, "in "))}};
    return part;
  }
  return Running(node, Says(how, "passed ") ? std::stoull(After(how, "passed ")) : 0);
}

// ---- What an action looks like ---------------------------------------------------------------

std::string Names(const std::vector<HelperAddress>& helpers) {
  std::string text;
  for (const HelperAddress& helper : helpers) text += " " + helper.node;
  return text.empty() ? " nobody" : text;
}

std::string Without(const LeftOut& left_out) {
  std::string text;
  for (const auto& [node, reason] : left_out.reasons()) text += " " + node;
  return text.empty() ? "" : " without" + text;
}

// Bytes per second.
std::string At(const SeenLinks& seen) {
  std::string text;
  const auto add = [&](const std::string& link, double rate) {
    text += " with " + link + " at " + std::to_string(std::lround(rate));
  };
  for (const auto& [node, rate] : seen.up) add(node + " up", rate);
  for (const auto& [node, rate] : seen.down) add(node + " down", rate);
  for (const auto& [ends, rate] : seen.pairs) add(ends.first + " to " + ends.second, rate);
  return text;
}

std::string Text(const action::Plan& plan) {
  std::string text = "plan " + std::to_string(plan.attempt) + Without(plan.left_out);
  text += At(plan.request.seen);
  if (!plan.request.left) return text;
  for (const SliceRun& run : plan.request.left->missing) {
    text += " for slices " + std::to_string(run.first) + ".." +
            std::to_string(run.first + run.count - 1);
  }
  // Of a hosted repair, which goes on as it began.
  if (!plan.request.scheme.empty()) text += " by " + plan.request.scheme;
  if (plan.request.slice_bytes > 0) text += " of " + std::to_string(plan.request.slice_bytes);
  return text;
}
std::string Text(const action::Journal& journal) {
  std::string text = "journal running " + std::to_string(journal.record.attempt);
  for (const Row row : journal.record.moved)
    text += ", " + journal.record.block_ids[row] + " stored";
  return text;
}
std::string Patience(const std::optional<Duration>& with_one) {
  if (!with_one) return "";
  return ", the last within " + std::to_string(std::lround(Seconds(*with_one) * 1e3)) + " ms";
}
std::string Text(const action::StartParts& start) {
  std::string text = "start";
  for (const auto& handout : start.handouts) text += " " + handout.helper.node;
  return text + Patience(start.straggler_after);
}
std::string Text(const action::AskParts& ask) {
  static constexpr const char* kQuestions[] = {"who failed", "what is left", "still there",
                                               "any progress"};
  return std::string("ask ") + kQuestions[static_cast<int>(ask.question)] + " " +
         std::to_string(ask.attempt) + ":" + Names(ask.helpers) + Patience(ask.straggler_after);
}
std::string Text(const action::EndParts& end) {
  return "end parts of " + std::to_string(end.attempt) + ", kept, at" + Names(end.helpers);
}
std::string Text(const action::Cancel& cancel) {
  return "cancel " + std::to_string(cancel.attempt) + " at" + Names(cancel.helpers);
}
std::string Text(const action::CancelLater& cancel) {
  return "cancel " + std::to_string(cancel.attempt) + " later at" + Names(cancel.helpers);
}
std::string Text(const action::MoveBlock& move) {
  return "move " + move.block_id + " to " + move.host;
}
std::string Text(const action::TryPlan& attempt) {
  return "try a plan" + Without(attempt.check.left_out) + At(attempt.request.seen);
}
std::string Text(const action::Grant& grant) { return "grant " + std::to_string(grant.attempt); }
std::string Text(const action::Refuse& refuse) { return "refuse: " + StatusText(refuse.status); }
std::string Text(const action::Advise& advise) {
  return advise.advice.replan ? "advise to plan again: " + advise.advice.reason : "advise to go on";
}
std::string Text(const action::Fault&) { return "fault"; }
std::string Text(const action::Doubt& doubt) {
  std::string text = "check the blocks of";
  for (const std::string& node : doubt.nodes) text += " " + node;
  return text;
}
std::string Text(const action::End& end) {
  if (end.again) return "journal the end again";
  return std::string("end ") + RepairStateName(end.record.state) +
         (end.record.detail.empty() ? "" : ": " + end.record.detail);
}
std::string Text(const action::TellEnd& tell) {
  return "tell that " + tell.end.block_id +
         (tell.end.status.ok() ? " is stored" : " is not stored");
}
std::string Text(const action::TellPartEnd& tell) {
  return "tell that " + tell.end.node + " has ended its part";
}

// ---- A story ---------------------------------------------------------------------------------

class Story {
 public:
  std::string Hear(std::string line) {
    if (line[0] == '+') {
      now_ += FromSeconds(std::stod(line.substr(1)));
      line = line.substr(line.find(' ') + 1);
    }
    std::optional<Event> event = Begins(line);
    if (!event) event = EventOf(line);
    if (!event) return "? this is no event\n";
    std::string text;
    for (const Action& action : repair_->On(*std::move(event), now_)) {
      Note(action);
      text += "> " + std::visit([](const auto& done) { return Text(done); }, action) + "\n";
    }
    return text;
  }

 private:
  // The event with which a repair begins.
  std::optional<Event> Begins(const std::string& line) {
    if (line.starts_with("take up ")) {
      RepairRecord record;
      record.repair_id = kRepair;
      record.block_ids = {"b0"};
      request_.block_ids = record.block_ids;
      record.attempt = static_cast<uint32_t>(std::stoul(After(line, "after ")));
      LeftOut left_out;
      if (Says(line, "lost ")) left_out.Suspect({{After(line, "lost "), {"suspect", false, ""}}});
      repair_ = RepairTracker::TakeUp(record, Left(line), left_out, now_, kAbandonAfter);
      return ResumeOf(line);
    }
    const bool adopted = line.starts_with("adopt ");
    if (!adopted && !line.starts_with("repair ")) return std::nullopt;
    RepairRecord record;
    record.repair_id = kRepair;
    record.block_ids = Split(After(line, adopted ? "adopt " : "repair "), ',');
    record.hosts = Split(After(line, "hosted by "), ',');
    const std::string recovery = After(line, "of recovery ");
    if (!recovery.empty()) record.recovery_id = std::stoull(recovery);
    request_.block_ids = record.block_ids;
    request_.hosts = record.hosts;
    if (adopted) {
      repair_ = RepairTracker::Adopt(record, now_, kAbandonAfter);
      return event::Adopted{};
    }
    repair_.emplace(record, request_, now_, kAbandonAfter);
    return event::Begin{};
  }

  std::optional<Event> EventOf(const std::string& line) {
    if (line.starts_with("planned") || line.starts_with("no plan")) return PlannedOf(line);
    if (line == "journaled") return event::Journaled{absl::OkStatus()};
    if (line == "journal is full") return event::Journaled{absl::ResourceExhaustedError("full")};
    if (line.starts_with("started")) return StartedOf(line);
    if (line == "moved") return event::Moved{row_, absl::OkStatus()};
    if (line == "catalog is full") return event::Moved{row_, absl::ResourceExhaustedError("full")};
    if (line == "next attempt") return event::NextAttempt{};
    if (line.starts_with("answers")) return AnswersOf(line);
    if (line.starts_with("resume ")) return ResumeOf(line);
    if (line == "check hosts") return event::CheckHostedProgress{};
    if (line.starts_with("check")) return CheckOf(line);
    if (line.starts_with("tried")) return TriedOf(line);
    if (line.starts_with("tick")) return TickOf(line);
    if (line == "finish ok") return event::Finish{{absl::OkStatus(), 1000}};
    if (line == "finish half") return event::Finish{{absl::OkStatus(), 500}};
    if (line == "finish wrong") return event::Finish{{absl::DataLossError("its SHA-256"), 1000}};
    if (line == "finish cancelled") return event::Finish{{absl::CancelledError("enough"), 0}};
    if (line == "cancel the recovery") {
      return event::CancelHosted{absl::CancelledError("the recovery was cancelled")};
    }
    const size_t ended = line.find(" ended: ");
    if (ended == std::string::npos) return std::nullopt;
    const std::string node = line.substr(0, ended);
    return event::Reported{node, attempt_, HowNamed(node, line.substr(ended + 8))->ended};
  }

  Event TriedOf(const std::string& line) const {
    const bool possible = !Says(line, "in vain");
    const std::string seconds = possible ? After(line, "in ") : "";
    return event::Tried{try_.check, possible, seconds.empty() ? 0 : std::stod(seconds)};
  }

  Event CheckOf(const std::string& line) const {
    const std::string missing = After(line, "missing ");
    return event::CheckProgress{attempt_, missing.empty() ? 400 : std::stoull(missing),
                                Says(line, "quiet")};
  }

  Event PlannedOf(const std::string& line) {
    event::Planned planned{absl::FailedPreconditionError("too few survivors"), plan_.left_out,
                           !Says(line, "too early")};
    if (line.starts_with("no plan")) return planned;
    const std::string read_bytes = After(line, "a read of ");
    if (read_bytes.empty() && Says(line, " of ")) {
      grid_ = kLanesGrid;
      PathLanes lanes{.lanes = {}, .seconds = std::stod(After(line, " in "))};
      for (const std::string& lane : Split(line.substr(8, line.find(" in ") - 8), ',')) {
        lanes.lanes.emplace_back(std::stoul(lane), Split(lane.substr(lane.find(" of ") + 4), ' '));
      }
      planned.plan = PlannedLanes(kRepair, plan_, lanes);
      return planned;
    }
    const size_t named = read_bytes.empty() ? 8 : line.find(" at ") + 4;
    std::vector<std::string> nodes =
        Split(line.substr(named, line.find(" too early") - named), ' ');
    // As the planner does, the plan takes back those that it needs.
    const auto left_out = [&](const std::string& node) { return planned.left_out.Has(node); };
    while (std::any_of(nodes.begin(), nodes.end(), left_out) && planned.left_out.ReadmitOne()) {
    }
    planned.plan = PlannedPath(kRepair, plan_, std::move(nodes));
    if (!read_bytes.empty()) {
      planned.plan->planned.bytes = std::stoull(read_bytes);
      planned.plan->planned.block_lengths = {4 << 20};
    }
    return planned;
  }

  static Event StartedOf(const std::string& line) {
    event::Started started;
    const std::string node = After(line, "but ");
    if (node.empty()) return started;
    if (Says(line, " is late")) {
      started.failure = absl::DeadlineExceededError("node " + node + " is late");
      started.late = {node};
      return started;
    }
    started.failure = absl::UnavailableError("node " + node + ": connection refused");
    started.refused[node] = started.failure;
    return started;
  }

  RepairRequest Left(const std::string& line) const {
    RepairRequest request = request_;
    const auto from = static_cast<uint32_t>(std::stoul(After(line, "from ")));
    request.left = {grid_, {{from, 10 - from, 1}}};
    return request;
  }
  Event ResumeOf(const std::string& line) const {
    const RepairRequest request = Left(line);
    const auto after = static_cast<uint32_t>(std::stoul(After(line, "after ")));
    return event::Resume{request, {kRepair, after, *request.left, "rp", FaultNamed(line)}};
  }

  Event AnswersOf(const std::string& line) {
    event::Answered answered{ask_.question, ask_.attempt, {}, ask_.check};
    std::map<std::string, std::string> hows;
    for (const std::string& named : Split(line.substr(7), ',')) {
      hows[named.substr(0, named.find(' '))] = named.substr(named.find(' ') + 1);
    }
    for (const HelperAddress& helper : ask_.helpers) {
      answered.answers.emplace(helper.node, HowNamed(helper.node, hows[helper.node]));
    }
    return answered;
  }

  Event TickOf(const std::string& line) {
    lives_.clear();
    for (const std::string node : {"h1", "h2", "h3", "h4", "h5", "s", "t"}) {
      const bool away = Says(line, node + " has not registered");
      lives_[node] = {.registered_here = !away,
                      .dead = away || Says(line, node + " died"),
                      .incarnation = Says(line, node + " restarted") ? 2u : 1u};
    }
    return event::Tick{&lives_};
  }

  // What the answer to it, or the next event, has to name.
  void Note(const Action& action) {
    if (const auto* plan = std::get_if<action::Plan>(&action)) plan_ = *plan;
    if (const auto* ask = std::get_if<action::AskParts>(&action)) ask_ = *ask;
    if (const auto* attempt = std::get_if<action::TryPlan>(&action)) try_ = *attempt;
    if (const auto* move = std::get_if<action::MoveBlock>(&action)) row_ = move->row;
    if (const auto* journal = std::get_if<action::Journal>(&action)) {
      attempt_ = journal->record.attempt;
    }
  }

  TimePoint now_{};
  RepairRequest request_;
  std::optional<RepairTracker> repair_;
  action::Plan plan_;
  action::AskParts ask_;
  action::TryPlan try_;
  Row row_ = 0;
  uint32_t attempt_ = 0;
  SliceGrid grid_ = kPathGrid;  // of the plan
  NodeLives lives_;
};

class RepairScript : public ::testing::TestWithParam<std::string> {};

TEST_P(RepairScript, HappensAsWritten) {
  const std::string path = std::string(SCRIPT_FOLDER) + "/" + GetParam() + ".txt";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::string written;
  std::string happened;
  Story story;
  int actions = 0;
  for (std::string line; std::getline(file, line);) {
    written += line + "\n";
    if (line.starts_with(">")) continue;
    happened += line + "\n";
    if (line.empty() || line.starts_with("#")) continue;
    const std::string done = story.Hear(line);
    EXPECT_FALSE(done.starts_with("?")) << line << ": " << done;
    actions += done.empty() ? 0 : 1;
    happened += done;
  }
  EXPECT_EQ(happened, written);
  EXPECT_GT(actions, 0);
  file.close();
  if (std::getenv("ECPIPE_UPDATE_SCRIPTS") != nullptr) std::ofstream(path) << happened;
}

INSTANTIATE_TEST_SUITE_P(All, RepairScript, ::testing::ValuesIn(ScriptNames(SCRIPT_FOLDER)),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace ecpipe::repair_script_test
