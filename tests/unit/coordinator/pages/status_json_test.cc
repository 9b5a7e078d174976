// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/status_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "base/bytes/utf8_text.h"

namespace ecpipe::status_json_test {
namespace {

using Json = nlohmann::json;

// Throws for what is no JSON, and so fails the test.
Json Parsed(const StatusSnapshot& snapshot, const ShownAtMost& most = {}) {
  const std::string text = StatusJson(snapshot, most);
  EXPECT_TRUE(IsCleanText(text));
  return Json::parse(text);
}

NodeView Node(const std::string& node, NodeState state = NodeState::kLive,
              const std::string& rack = "") {
  NodeView view;
  view.record.node_id = node;
  view.record.rack = rack;
  view.state = state;
  return view;
}

ShownRepair Repair(RepairId id) {
  ShownRepair shown;
  shown.running.record.repair_id = id;
  shown.running.record.block_ids = {"block"};
  shown.running.phase = "running";
  return shown;
}

TEST(StatusJsonTest, NothingAtAll) {
  const Json json = Parsed({});
  EXPECT_EQ(json["state"], "empty");
  EXPECT_EQ(json["nodes"]["all"], 0);
  EXPECT_EQ(json["nodes"]["racks"], Json::array());
  EXPECT_EQ(json["nodes"]["refused"], Json::array());
  for (const char* list : {"recoveries", "repairs", "queue"}) {
    EXPECT_EQ(json[list], Json({{"all", 0}, {"more", 0}, {"shown", Json::array()}})) << list;
  }
  EXPECT_EQ(json["ended"], Json({{"error", nullptr}, {"shown", Json::array()}}));
}

TEST(StatusJsonTest, Nodes) {
  StatusSnapshot snapshot;
  snapshot.nodes = {Node("a", NodeState::kLive, "r1"), Node("b", NodeState::kDead, "r1"),
                    Node("c", NodeState::kDraining, "r2"), Node("d", NodeState::kDead, "r3")};
  snapshot.nodes[3].kept_out = KeptOut::kMaintenance;
  snapshot.nodes[0].record.block_count = 7;
  snapshot.nodes[0].record.free_bytes = 8;
  snapshot.nodes[0].record.disk_bytes = 9;
  snapshot.nodes[0].record.repair_bytes_per_second = 1e9;
  snapshot.nodes[0].record.failed_roots = {"/data: gone"};
  snapshot.uses["a"] = {.sends = 5, .receives = 6};
  snapshot.refused = {{"d", "host:1", "its address is taken", 1}};
  const Json json = Parsed(snapshot)["nodes"];
  EXPECT_EQ(json["all"], 4);
  EXPECT_EQ(json["live"], 1);
  EXPECT_EQ(json["draining"], 1);
  EXPECT_EQ(json["dead"], 1);
  EXPECT_EQ(json["away"], 1);
  EXPECT_EQ(json["more"], 0);
  ASSERT_EQ(json["racks"].size(), 3u);
  EXPECT_EQ(json["racks"][2]["nodes"][0]["kept_out"], "in maintenance");
  const Json& rack = json["racks"][0];
  EXPECT_EQ(rack["rack"], "r1");
  EXPECT_EQ(rack["all"], 2);
  EXPECT_EQ(rack["live"], 1);
  EXPECT_EQ(rack["nodes"][0]["node"], "b") << "the dead come first";
  const Json& node = rack["nodes"][1];
  EXPECT_EQ(node["node"], "a");
  EXPECT_EQ(node["blocks"], 7);
  EXPECT_EQ(node["free_bytes"], 8);
  EXPECT_EQ(node["disk_bytes"], 9);
  EXPECT_EQ(rack["nodes"][0]["free_bytes"], nullptr);
  EXPECT_EQ(rack["nodes"][0]["disk_bytes"], nullptr);
  EXPECT_EQ(node["limit_bytes_per_second"], 1e9);
  EXPECT_EQ(node["failed_roots"], Json({"/data: gone"}));
  EXPECT_EQ(node["send_bytes_per_second"], 5);
  EXPECT_EQ(node["receive_bytes_per_second"], 6);
  EXPECT_EQ(json["refused"][0]["reason"], "its address is taken");
}

TEST(StatusJsonTest, WhatIsBeingDoneComesBeforeMaintenances) {
  StatusSnapshot snapshot;
  const auto add = [&](RecoveryId id, RecoveryKind kind, RecoveryState state) {
    RecoveryRecord& record = snapshot.recoveries.emplace_back().record;
    record.recovery_id = id;
    record.request.kind = kind;
    record.state = state;
    record.keeps_out = kind == RecoveryKind::kMaintenance && !Ended(state);
  };
  add(104, RecoveryKind::kRebuild, RecoveryState::kDone);
  add(103, RecoveryKind::kMaintenance, RecoveryState::kCancelled);
  for (RecoveryId id = 102; id > 2; --id) {
    add(id, RecoveryKind::kMaintenance, RecoveryState::kRunning);
  }
  add(1, RecoveryKind::kRebuild, RecoveryState::kRunning);
  const Json json = Parsed(snapshot)["recoveries"];
  EXPECT_EQ(json["shown"][0]["recovery"], 1);
  EXPECT_EQ(json["shown"][0]["only_announced"], false);
  EXPECT_EQ(json["shown"][1]["recovery"], 102);
  EXPECT_EQ(json["shown"][1]["only_announced"], true);
  EXPECT_EQ(json["all"], 103);
}

TEST(StatusJsonTest, ARepairThatRuns) {
  StatusSnapshot snapshot;
  snapshot.running_repairs = 1;
  snapshot.repairs = {Repair(0xabc)};
  ShownRepair& shown = snapshot.repairs[0];
  Json repair = Parsed(snapshot)["repairs"]["shown"][0];
  for (const char* unknown : {"recovery", "bytes", "done_bytes", "heard_seconds_ago",
                              "bytes_per_second", "eta_seconds"}) {
    EXPECT_EQ(repair[unknown], nullptr) << unknown;
  }
  EXPECT_EQ(repair["repair"], "000000");
  shown.running.record.recovery_id = 3;
  shown.running.whole_bytes = 1000;
  shown.running.missing_bytes = 400;
  shown.heard_seconds_ago = 1.5;
  shown.bytes_per_second = 100;
  shown.links = {{"a", "b", 2, 100.0, 0.5}, {"b", "c", 1, std::nullopt, 0}};
  shown.held_back = HeldBack{HeldBack::By::kLink, "a", "b"};
  repair = Parsed(snapshot)["repairs"]["shown"][0];
  EXPECT_EQ(repair["recovery"], 3);
  EXPECT_EQ(repair["bytes"], 1000);
  EXPECT_EQ(repair["done_bytes"], 600);
  EXPECT_EQ(repair["eta_seconds"], 4);
  EXPECT_EQ(repair["heard_seconds_ago"], 1.5);
  const Json& pipeline = repair["pipeline"];
  EXPECT_EQ(pipeline["all"], 2);
  EXPECT_EQ(pipeline["links"][0]["bytes_per_second"], 100);
  EXPECT_EQ(pipeline["links"][1]["bytes_per_second"], nullptr);
  EXPECT_EQ(pipeline["held_back_by"], Json({{"kind", "link"}, {"from", "a"}, {"to", "b"}}));
}

TEST(StatusJsonTest, NumbersThatAreNone) {
  StatusSnapshot snapshot;
  snapshot.repairs = {Repair(1)};
  snapshot.repairs[0].running.whole_bytes = 10;
  snapshot.repairs[0].running.missing_bytes = 20;  // more than there is
  snapshot.repairs[0].bytes_per_second = std::numeric_limits<double>::quiet_NaN();
  snapshot.nodes = {Node("a")};
  snapshot.nodes[0].seconds_since_heartbeat = std::numeric_limits<double>::infinity();
  const Json json = Parsed(snapshot);
  EXPECT_EQ(json["repairs"]["shown"][0]["done_bytes"], 0);
  EXPECT_EQ(json["repairs"]["shown"][0]["bytes_per_second"], nullptr);
  EXPECT_EQ(json["nodes"]["racks"][0]["nodes"][0]["heartbeat_seconds_ago"], nullptr);
  EXPECT_EQ(json["nodes"]["racks"][0]["nodes"][0]["heartbeat_unknown"], false);
  snapshot.nodes[0].heartbeat_unknown = true;
  EXPECT_EQ(Parsed(snapshot)["nodes"]["racks"][0]["nodes"][0]["heartbeat_unknown"], true);
}

TEST(StatusJsonTest, RepairsThatHaveEnded) {
  StatusSnapshot snapshot;
  RepairRecord& record = snapshot.ended.emplace_back();
  record.repair_id = 5;
  record.block_ids = {"x", "y"};
  record.state = RepairState::kFailed;
  record.bytes = 77;
  record.ended_unix_ms = 9;
  record.detail = "too few survivors";
  snapshot.ended_error = "the disk is gone";
  const Json ended = Parsed(snapshot)["ended"];
  EXPECT_EQ(ended["error"], "the disk is gone");
  const Json& repair = ended["shown"][0];
  EXPECT_EQ(repair["repair"], "000000");
  EXPECT_EQ(repair["blocks"], Json({"x", "y"}));
  EXPECT_EQ(repair["state"], "failed");
  EXPECT_EQ(repair["bytes"], 77);
  EXPECT_EQ(repair["ended_unix_ms"], 9);
  EXPECT_EQ(repair["detail"], "too few survivors");
}

TEST(StatusJsonTest, RecoveriesAndTheirQueue) {
  StatusSnapshot snapshot;
  snapshot.recoveries.resize(2);
  snapshot.recoveries[0].record.recovery_id = 2;
  snapshot.recoveries[0].record.state = RecoveryState::kDone;
  snapshot.recoveries[0].record.ended_unix_ms = 50;
  snapshot.recoveries[1].record.recovery_id = 1;
  snapshot.recoveries[1].waiting_blocks = 9;
  snapshot.recoveries[1].eta_seconds = 60;
  snapshot.recoveries[1].waits = {{WaitKind::kLimit, 9, "max_running"}};
  WaitingBlock& waiting = snapshot.queue.emplace_back();
  waiting.block_id = "lost";
  waiting.recovery_id = 1;
  waiting.spare = -1;
  waiting.why = {WaitKind::kSurvivors, 1, "too few"};
  const Json json = Parsed(snapshot);
  const Json& shown = json["recoveries"]["shown"];
  EXPECT_EQ(shown[0]["recovery"], 1) << "those that have not ended come first";
  EXPECT_EQ(shown[0]["ended_unix_ms"], nullptr);
  EXPECT_EQ(shown[0]["eta_seconds"], 60);
  EXPECT_EQ(shown[0]["waits"][0]["kind"], "limit");
  EXPECT_EQ(shown[1]["ended_unix_ms"], 50);
  EXPECT_EQ(shown[1]["eta_seconds"], nullptr);
  EXPECT_EQ(json["queue"]["all"], 9);
  EXPECT_EQ(json["queue"]["more"], 8);
  EXPECT_EQ(json["queue"]["shown"][0]["block"], "lost");
  EXPECT_EQ(json["queue"]["shown"][0]["spare_survivors"], -1);
  EXPECT_EQ(json["queue"]["shown"][0]["kind"], "survivors");
}

// Whoever knows all of it may end the repair.
TEST(StatusJsonTest, NoRepairIdIsToldWhole) {
  StatusSnapshot snapshot;
  snapshot.repairs = {Repair(0x0123456789abcdef)};
  snapshot.ended.resize(2);
  snapshot.ended[0].repair_id = 0xfedcba9876543210;
  snapshot.ended[0].detail =
      "repair 0123456789abcdef is already storing block 0123456789abcdef0 (ecpipe:fedcba9876543210";
  snapshot.ended[1].detail = "0123456789abcde";
  const Json json = Parsed(snapshot);
  EXPECT_EQ(json["repairs"]["shown"][0]["repair"], "012345");
  const Json& ended = json["ended"]["shown"];
  EXPECT_EQ(ended[0]["repair"], "fedcba");
  EXPECT_EQ(ended[0]["detail"],
            "repair 012345… is already storing block 0123456789abcdef0 (ecpipe:fedcba…");
  EXPECT_EQ(ended[1]["detail"], "0123456789abcde");
}

TEST(StatusJsonTest, ListsHaveALimitAndCountWhatIsLeftOut) {
  const ShownAtMost most{
      .nodes = 2, .repairs = 2, .ended = 2, .recoveries = 2, .waiting = 2, .links = 2, .names = 2};
  StatusSnapshot snapshot;
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i);
    snapshot.nodes.push_back(Node(name, NodeState::kLive, i < 4 ? "r1" : "r2"));
    snapshot.nodes.back().record.failed_roots.assign(5, "/data");
    snapshot.repairs.push_back(Repair(1));
    snapshot.repairs.back().links.resize(5);
    snapshot.repairs.back().running.record.block_ids.assign(5, "block");
    snapshot.recoveries.emplace_back().waits.resize(5);
    snapshot.recoveries.back().waiting_blocks = 1;
    snapshot.queue.emplace_back();
    snapshot.ended.emplace_back();
    snapshot.refused.emplace_back();
  }
  snapshot.running_repairs = 9;
  const Json json = Parsed(snapshot, most);
  EXPECT_EQ(json["nodes"]["all"], 5);
  EXPECT_EQ(json["nodes"]["more"], 3);
  ASSERT_EQ(json["nodes"]["racks"].size(), 1u);
  EXPECT_EQ(json["nodes"]["racks"][0]["all"], 4);
  EXPECT_EQ(json["nodes"]["racks"][0]["nodes"].size(), 2u);
  EXPECT_EQ(json["nodes"]["racks"][0]["nodes"][0]["failed_roots"].size(), 2u);
  EXPECT_EQ(json["nodes"]["refused"].size(), 2u);
  EXPECT_EQ(json["repairs"]["all"], 9);
  EXPECT_EQ(json["repairs"]["more"], 7);
  const Json& repair = json["repairs"]["shown"][1];
  EXPECT_EQ(repair["blocks"].size(), 2u);
  EXPECT_EQ(repair["pipeline"]["more"], 3);
  EXPECT_EQ(json["recoveries"]["more"], 3);
  EXPECT_EQ(json["recoveries"]["shown"][0]["waits"].size(), 2u);
  EXPECT_EQ(json["queue"]["more"], 3);
  EXPECT_EQ(json["ended"]["shown"].size(), 2u);
}

TEST(StatusJsonTest, HostileTextsAreCleanedAndCutAtWholeCharacters) {
  const ShownAtMost most{.text_bytes = 8};
  StatusSnapshot snapshot;
  snapshot.nodes = {Node("\xff\x80\x01</script>\"\\")};
  snapshot.nodes[0].silent_because = "1234567ü";  // the last character has two bytes
  snapshot.repairs = {Repair(1)};
  snapshot.repairs[0].running.record.requestor = std::string("a\0b\n", 4);
  snapshot.ended.resize(1);
  snapshot.ended[0].detail = "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80";
  const Json json = Parsed(snapshot, most);
  const Json& node = json["nodes"]["racks"][0]["nodes"][0];
  EXPECT_EQ(node["node"],
            "??"
            "?</scr…");
  EXPECT_EQ(node["silent_because"], "1234567…");
  EXPECT_EQ(json["repairs"]["shown"][0]["requestor"], "a?b?");
  EXPECT_EQ(json["ended"]["shown"][0]["detail"], "\xf0\x9f\x98\x80\xf0\x9f\x98\x80…");
}

// The limits of ShownAtMost hold together: the largest answer that anybody can cause is bounded.
TEST(StatusJsonTest, TheLargestAnswer) {
  const std::string text(500, '"');  // each takes two bytes
  const std::vector<std::string> texts(17, text);
  StatusSnapshot snapshot;
  for (int i = 0; i < 601; ++i) {
    NodeView& node = snapshot.nodes.emplace_back(Node(text, NodeState::kLive, text));
    node.silent_because = text;
    node.record.failed_roots = texts;
  }
  for (int i = 0; i < 51; ++i) {
    ShownRepair& shown = snapshot.repairs.emplace_back(Repair(1));
    shown.running.record.block_ids = shown.running.record.hosts = texts;
    shown.links.assign(257, {text, text, 1, 1.0, 1});
    snapshot.ended.push_back(shown.running.record);
    snapshot.refused.push_back({text, text, text, 0});
    RecoveryView& recovery = snapshot.recoveries.emplace_back();
    recovery.record.request.node = text;
    recovery.waits.assign(17, {WaitKind::kFailed, 1, text});
    WaitingBlock& waiting = snapshot.queue.emplace_back();
    waiting.node = waiting.block_id = waiting.why.reason = text;
  }
  EXPECT_LT(StatusJson(snapshot).size(), size_t{24} << 20);
}

}  // namespace
}  // namespace ecpipe::status_json_test
