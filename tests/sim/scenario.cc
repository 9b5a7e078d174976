// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario.h"

#include <algorithm>

#include "base/check.h"
#include "codec/erasure_code.h"

namespace ecpipe::sim {
namespace {

Duration Millis(uint64_t millis) { return std::chrono::milliseconds(millis); }

void ChooseShape(Random* random, Scenario* scenario) {
  scenario->code = random->Pick<std::string>(
      {"rs(4,2)", "rs(5,3)", "rs(6,4)", "rs(9,6)", "lrc(4,2,2)", "rotated-rs(6,4,2,64)"});
  const auto code = CreateErasureCode(scenario->code);
  ECPIPE_CHECK(code.ok());
  scenario->nodes = (*code)->n() + static_cast<int>(random->Between(1, 3));
  scenario->stripes = static_cast<int>(random->Between(1, 4));
  const uint64_t group = (*code)->layout().group_bytes();
  scenario->block_bytes = std::max<uint64_t>(1, random->Between(200, 12'000) / group) * group;
  scenario->slice_bytes = static_cast<uint32_t>(random->Between(64, 2048)) / 64 * 64;
}

void ChooseNetwork(Random* random, Scenario* scenario) {
  NetworkOptions& network = scenario->network;
  network.most_delay = Millis(random->Pick<uint64_t>({1, 5, 50}));
  network.bytes_per_second = random->Pick<double>({1e5, 1e6, 1e8});
  network.window_bytes = random->Pick<size_t>({100, 1000, 20'000});
  if (scenario->trouble != Scenario::Trouble::kMuch) return;
  network.lose_message = random->Pick<double>({0, 0.02, 0.1});
  network.duplicate_message = random->Pick<double>({0, 0.02, 0.1});
  network.corrupt_piece = random->Pick<double>({0, 0.0005, 0.005});
  network.cut_stream = random->Pick<double>({0, 0.0005, 0.005});
  scenario->fault_point = random->Pick<double>({0, 0.0002, 0.002});
}

// What is paused is resumed or cancelled in the end.
Scenario::Operation MakeRecovery(Random* random, Duration at) {
  Scenario::Operation recovery;
  recovery.at = at;
  recovery.kind = Scenario::Operation::Kind::kRecover;
  recovery.delay_seconds = random->Pick<double>({0, 3, -1});
  for (uint64_t pauses = random->Below(3); pauses > 0; --pauses) {
    recovery.steps.push_back({Millis(random->Below(5'000)), RecoveryChange::kPause});
    recovery.steps.push_back({Millis(random->Between(200, 20'000)), RecoveryChange::kResume});
  }
  if (random->Chance(0.15)) {
    recovery.steps.push_back({Millis(random->Below(10'000)), RecoveryChange::kCancel});
  }
  return recovery;
}

void ChooseOperations(Random* random, Scenario* scenario) {
  using Kind = Scenario::Operation::Kind;
  const uint64_t chaos_millis = static_cast<uint64_t>(Seconds(scenario->chaos) * 1000);
  const uint64_t count = random->Between(2, 8);
  for (uint64_t i = 0; i < count; ++i) {
    Scenario::Operation operation;
    operation.at = Millis(random->Below(chaos_millis));
    operation.kind = random->Pick<Kind>({Kind::kRead, Kind::kRead, Kind::kReadSeveral,
                                         Kind::kReadDirect, Kind::kRepairToNodes,
                                         Kind::kRepairToNodes, Kind::kRepairSeveralToNodes});
    if (random->Chance(0.15)) {
      operation.cancel_after = Millis(random->Between(1, 2000));
      operation.crash = random->Chance(0.5);
    }
    scenario->operations.push_back(operation);
  }
  if (random->Chance(scenario->lasting ? 0.9 : 0.4)) {
    scenario->operations.push_back(MakeRecovery(random, Millis(random->Below(chaos_millis))));
  }
}

void ChooseActions(Random* random, Scenario* scenario) {
  using Kind = Scenario::Action::Kind;
  if (scenario->trouble == Scenario::Trouble::kNone) return;
  const uint64_t chaos_millis = static_cast<uint64_t>(Seconds(scenario->chaos) * 1000);
  const bool much = scenario->trouble == Scenario::Trouble::kMuch;
  const uint64_t count = much ? random->Between(3, 12) : random->Between(1, 2);
  for (uint64_t i = 0; i < count; ++i) {
    Scenario::Action action;
    action.at = Millis(random->Below(chaos_millis));
    action.lasts = Millis(random->Between(50, 15'000));
    action.kind = static_cast<Kind>(random->Below(8));
    // So that blocks have to wait for nodes.
    if (scenario->lasting && random->Chance(0.4)) action.kind = Kind::kCrashHelper;
    scenario->actions.push_back(action);
  }
}

// Without trouble nothing may be refused.
void ChooseVersionsAndLimits(Random* random, Scenario* scenario) {
  if (scenario->trouble == Scenario::Trouble::kNone) return;
  scenario->marked = random->Chance(0.2);
  if (random->Chance(0.3)) {
    scenario->older_nodes = static_cast<int>(random->Between(1, scenario->nodes));
  }
  if (random->Chance(0.3)) {
    scenario->limits.running_repairs = random->Pick<uint32_t>({1, 2, 4, 10'000});
    scenario->limits.streams_per_node = random->Pick<uint32_t>({1, 2, 8});
    scenario->limits.sessions = random->Pick<uint32_t>({1, 2, 4, 64});
  }
}

}  // namespace

Scenario MakeScenario(Random* random) {
  Scenario scenario;
  scenario.trouble = random->Pick<Scenario::Trouble>(
      {Scenario::Trouble::kNone, Scenario::Trouble::kSome, Scenario::Trouble::kSome,
       Scenario::Trouble::kMuch, Scenario::Trouble::kMuch});
  scenario.lasting = scenario.trouble != Scenario::Trouble::kNone && random->Chance(0.2);
  // Operations that begin together meet more of each other.
  scenario.chaos = Millis(random->Pick<uint64_t>({300, 5'000, 40'000}));
  ChooseShape(random, &scenario);
  ChooseNetwork(random, &scenario);
  ChooseOperations(random, &scenario);
  ChooseActions(random, &scenario);
  ChooseVersionsAndLimits(random, &scenario);
  scenario.known_links = random->Chance(0.5);
  return scenario;
}

std::string Describe(const Scenario& scenario) {
  const char* const troubles[] = {"no", "some", "much"};
  return scenario.code + ", " + std::to_string(scenario.nodes) + " nodes, " +
         std::to_string(scenario.stripes) + " stripes, blocks of " +
         std::to_string(scenario.block_bytes) + " bytes, slices of " +
         std::to_string(scenario.slice_bytes) + ", " +
         (scenario.known_links ? "known" : "unknown") + " links, " +
         (scenario.older_nodes > 0 ? std::to_string(scenario.older_nodes) + " older nodes, " : "") +
         "limits " + std::to_string(scenario.limits.running_repairs) + "/" +
         std::to_string(scenario.limits.streams_per_node) + "/" +
         std::to_string(scenario.limits.sessions) + ", " +
         troubles[static_cast<int>(scenario.trouble)] +
         (scenario.lasting ? " lasting trouble, " : " trouble, ") +
         std::to_string(scenario.operations.size()) + " operations, " +
         std::to_string(scenario.actions.size()) + " actions";
}

}  // namespace ecpipe::sim
