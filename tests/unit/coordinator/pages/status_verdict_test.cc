// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/status_verdict.h"

#include <gtest/gtest.h>

namespace ecpipe::status_verdict_test {
namespace {

class StatusVerdictTest : public testing::Test {
 protected:
  StatusVerdictTest() {
    for (const char* node : {"a", "b"}) {
      NodeView& view = snapshot_.nodes.emplace_back();
      view.record.node_id = node;
      view.state = NodeState::kLive;
    }
  }
  RecoveryView& AddRecovery(const std::string& node, RecoveryState state) {
    RecoveryView& view = *snapshot_.recoveries.emplace(snapshot_.recoveries.begin());
    view.record.request.node = node;
    view.record.state = state;
    return view;
  }
  void Expect(const char* state, const std::string& text) {
    const ClusterVerdict verdict = Judge(snapshot_);
    EXPECT_STREQ(ClusterStateName(verdict.state), state);
    EXPECT_EQ(verdict.text, text);
  }

  StatusSnapshot snapshot_;
};

TEST_F(StatusVerdictTest, Empty) {
  snapshot_.nodes.clear();
  Expect("empty", "no helper has registered yet");
}

TEST_F(StatusVerdictTest, Healthy) {
  Expect("healthy", "2 nodes, nothing to repair");
  AddRecovery("a", RecoveryState::kReturned);
  Expect("healthy", "2 nodes, nothing to repair");
}

TEST_F(StatusVerdictTest, Degraded) {
  snapshot_.nodes[0].state = NodeState::kDead;
  snapshot_.nodes[0].record.failed_roots = {"of a dead node"};
  snapshot_.nodes[1].record.failed_roots = {"/one", "/two"};
  snapshot_.nodes[1].silent_because = "no answer";
  snapshot_.corrupt_blocks = 1;
  Expect("degraded",
         "1 dead node, 1 node that answers no call, 2 failed roots, 1 corrupt block; no repair "
         "runs");
}

TEST_F(StatusVerdictTest, ADeadNodeIsMissedUntilItsLatestRecoveryIsDone) {
  snapshot_.nodes[0].state = NodeState::kDead;
  AddRecovery("a", RecoveryState::kPartial);
  Expect("degraded", "1 dead node; no repair runs");
  AddRecovery("a", RecoveryState::kDone);
  Expect("healthy", "2 nodes, nothing to repair");
  AddRecovery("a", RecoveryState::kCancelled);
  Expect("degraded", "1 dead node; no repair runs");
}

TEST_F(StatusVerdictTest, ANodeThatWasHeardOfSinceItsRecoveryIsMissedAgain) {
  snapshot_.nodes[0].state = NodeState::kDead;
  snapshot_.nodes[0].seconds_since_heartbeat = 10;
  snapshot_.unix_ms = 100'000;
  RecoveryView& recovery = AddRecovery("a", RecoveryState::kDone);
  recovery.record.ended_unix_ms = 95'000;
  Expect("healthy", "2 nodes, nothing to repair");
  recovery.record.ended_unix_ms = 85'000;
  Expect("degraded", "1 dead node; no repair runs");
  snapshot_.nodes[0].kept_out = KeptOut::kDrained;  // it takes none, so it has none
  Expect("healthy", "2 nodes, nothing to repair");
}

TEST_F(StatusVerdictTest, AMaintenanceThatWasCancelledChangesNothing) {
  snapshot_.nodes[0].state = NodeState::kDead;
  AddRecovery("a", RecoveryState::kDone);
  AddRecovery("a", RecoveryState::kCancelled).record.request.kind = RecoveryKind::kMaintenance;
  Expect("healthy", "2 nodes, nothing to repair");
  snapshot_.recoveries.front().record.blocks = 1;  // its time was over
  Expect("degraded", "1 dead node; no repair runs");
}

TEST_F(StatusVerdictTest, WhatAMaintenanceHasAnnouncedIsNoTrouble) {
  snapshot_.nodes[0].state = NodeState::kDead;
  snapshot_.nodes[0].kept_out = KeptOut::kMaintenance;
  snapshot_.nodes[0].record.failed_roots = {"why it is away"};
  RecoveryView& maintenance = AddRecovery("a", RecoveryState::kRunning);
  maintenance.record.request.kind = RecoveryKind::kMaintenance;
  maintenance.record.keeps_out = true;
  Expect("healthy", "2 nodes, nothing to repair; 1 node in maintenance");
  snapshot_.nodes[0].state = NodeState::kLive;
  Expect("degraded", "1 failed root; no repair runs");
  snapshot_.nodes[0].state = NodeState::kDead;
  maintenance.record.keeps_out = false;  // its time is over
  maintenance.waiting_blocks = 3;
  snapshot_.nodes[0].kept_out = KeptOut::kNone;
  Expect("repairing", "0 repairs running, 3 blocks waiting; 1 dead node");
}

TEST_F(StatusVerdictTest, Repairing) {
  snapshot_.running_repairs = 1;
  Expect("repairing", "1 repair running, 0 blocks waiting");
  snapshot_.nodes[0].state = NodeState::kDead;
  RecoveryView& recovery = AddRecovery("a", RecoveryState::kRunning);
  recovery.waiting_blocks = 3;
  recovery.record.failed_blocks = 2;
  Expect("repairing", "1 repair running, 3 blocks waiting, 2 blocks given up; 1 dead node");
  // What cannot go on now is no reason to call the whole stuck while something runs.
  recovery.waits = {{WaitKind::kSurvivors, 3, "too few survivors"}};
  Expect("repairing", "1 repair running, 3 blocks waiting, 2 blocks given up; 1 dead node");
}

TEST_F(StatusVerdictTest, APausedRecoveryIsNotStuck) {
  RecoveryView& recovery = AddRecovery("a", RecoveryState::kPaused);
  recovery.waiting_blocks = 3;
  recovery.waits = {{WaitKind::kPaused, 3, "an operator has paused it"}};
  Expect("repairing", "0 repairs running, 3 blocks waiting");
}

TEST_F(StatusVerdictTest, Throttled) {
  snapshot_.running_repairs = 2;
  snapshot_.repairs.resize(2);
  snapshot_.repairs[0].held_back = HeldBack{HeldBack::By::kLink, "a", "b"};
  Expect("repairing", "2 repairs running, 0 blocks waiting");
  snapshot_.repairs[1].held_back = HeldBack{HeldBack::By::kLimit, "a", ""};
  Expect("throttled",
         "2 repairs running, 0 blocks waiting; node a sends as much as its limit allows");
  RecoveryView& recovery = AddRecovery("a", RecoveryState::kRunning);
  recovery.waiting_blocks = 9;
  recovery.waits = {{WaitKind::kLimit, 9, "max_running is 2"}};
  Expect("throttled", "2 repairs running, 9 blocks waiting; max_running is 2");
}

TEST_F(StatusVerdictTest, Stuck) {
  RecoveryView& recovery = AddRecovery("a", RecoveryState::kRunning);
  recovery.waiting_blocks = 9;
  recovery.waits = {{WaitKind::kHelper, 2, "b does not answer"},
                    {WaitKind::kSurvivors, 5, "too few survivors"},
                    {WaitKind::kNext, 2, "their turn"}};
  Expect("stuck", "5 blocks of 9 that wait cannot be repaired now: too few survivors");
}

}  // namespace
}  // namespace ecpipe::status_verdict_test
