// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/watch_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ecpipe::watch_screen_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

WatchFrame Frame(int nodes, int repairs, int recoveries) {
  WatchFrame frame;
  frame.coordinator = "10.0.0.1:7700";
  frame.time = "12:34:56";
  frame.now_unix_ms = 10'000;
  frame.answered = true;
  for (int i = 0; i < nodes; ++i) {
    NodeStatus& node = frame.status.nodes.emplace_back();
    node.node = "node-" + std::to_string(100 + i);
    node.state = "live";
    node.answers = true;
    frame.uses[node.node] = {1e6, 0};
  }
  for (int i = 0; i < repairs; ++i) {
    RepairRecord& repair = frame.status.repairs.emplace_back();
    repair.repair_id = static_cast<RepairId>(i);
    repair.block_ids = {"block"};
    repair.scheme = "rp";
  }
  for (int i = 0; i < recoveries; ++i) {
    RecoveryView& recovery = frame.recoveries.emplace_back();
    recovery.record.recovery_id = static_cast<RecoveryId>(i + 1);
    recovery.record.request.node = "lost-" + std::to_string(i);
    recovery.record.blocks = 12;
    recovery.record.done_blocks = 5;
    recovery.eta_seconds = 65;
  }
  return frame;
}

size_t Rows(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(WatchScreen, ShowsEachSectionThatHasSomething) {
  const std::string text = WatchScreen(Frame(2, 1, 1), {}, {}, 0);
  EXPECT_THAT(text, AllOf(HasSubstr("12:34:56  coordinator 10.0.0.1:7700"), HasSubstr("2 live"),
                          HasSubstr("node-101"), HasSubstr("lost-0"), HasSubstr("5 of 12"),
                          HasSubstr("1:05"), HasSubstr("block")));
  EXPECT_THAT(WatchScreen(Frame(2, 0, 0), {}, {}, 0),
              AllOf(Not(HasSubstr("recovery")), Not(HasSubstr("scheme"))));
}

TEST(WatchScreen, AMaintenanceHasATimeAndNoBlocks) {
  WatchFrame frame = Frame(2, 0, 1);
  RecoveryView& maintenance = frame.recoveries[0];
  maintenance.record.request.kind = RecoveryKind::kMaintenance;
  maintenance.record.keeps_out = true;
  maintenance.record.blocks = 0;
  maintenance.record.done_blocks = 0;
  maintenance.eta_seconds = -1;
  maintenance.begins_in_seconds = 125;
  EXPECT_THAT(WatchScreen(frame, {}, {}, 0),
              AllOf(HasSubstr("maintenance"), HasSubstr("2:05"), Not(HasSubstr("running, "))));
}

TEST(WatchScreen, BeforeTheFirstAnswerItSaysOnlyThat) {
  WatchFrame frame;
  frame.coordinator = "10.0.0.1:7700";
  frame.time = "12:34:56";
  frame.error = "no answer yet";
  EXPECT_EQ(WatchScreen(frame, {}, {}, 0),
            "12:34:56  coordinator 10.0.0.1:7700\nnot newer: no answer yet\n");
}

TEST(WatchScreen, ARecoveryThatHasEndedIsNotShown) {
  WatchFrame frame = Frame(1, 0, 1);
  frame.recoveries[0].record.state = RecoveryState::kDone;
  EXPECT_THAT(WatchScreen(frame, {}, {}, 0), Not(HasSubstr("lost-0")));
}

TEST(WatchScreen, FitsEveryTerminal) {
  for (const size_t rows : {12, 24, 50}) {
    for (const auto& [nodes, repairs, recoveries] :
         {std::tuple(500, 50, 20), std::tuple(500, 0, 0), std::tuple(3, 50, 1), std::tuple(0, 0, 0),
          std::tuple(3, 1, 30)}) {
      const std::string text =
          WatchScreen(Frame(nodes, repairs, recoveries), {}, {.columns = 80}, rows);
      EXPECT_LE(Rows(text), rows) << text;
    }
  }
}

TEST(WatchScreen, CountsWhatHasNoRoomAndUsesWhatOthersLeave) {
  const std::string text = WatchScreen(Frame(500, 0, 0), {}, {.columns = 80}, 24);
  EXPECT_EQ(Rows(text), 24u) << text;
  EXPECT_THAT(text, HasSubstr("... and 481 more"));
  EXPECT_THAT(WatchScreen(Frame(3, 5, 2), {}, {.columns = 80}, 30), Not(HasSubstr("more")));
}

TEST(WatchScreen, SaysWhatIsWrong) {
  WatchFrame frame = Frame(2, 0, 0);
  frame.status.nodes[1].state = "dead";
  frame.error = "UNAVAILABLE: nobody\nthere";
  EXPECT_THAT(WatchScreen(frame, {}, {}, 0),
              AllOf(HasSubstr("1 dead, 1 live"), HasSubstr("node-101: no heartbeat"),
                    HasSubstr("not newer: UNAVAILABLE: nobody?there")));
}

}  // namespace
}  // namespace ecpipe::watch_screen_test
