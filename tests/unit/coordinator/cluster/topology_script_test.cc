// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/topology_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/status.h"
#include "coordinator/cluster/node_registry.h"
#include "unit/coordinator/fakes.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::topology_script_test {
namespace {

using ::testing::HasSubstr;

class TopologyScriptTest : public testing::Test {
 protected:
  std::string Script(const std::string& body) {
    // Renamed, since the one before may just be starting.
    const std::string written = path_ + ".new";
    std::ofstream(written) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(written, std::filesystem::perms::owner_all);
    std::filesystem::rename(written, path_);
    return path_;
  }
  absl::StatusOr<std::string> Ask(const std::string& body, const std::string& host = "h1") {
    return TopologyScript(Script(body)).RackOf(host);
  }

  // Waits for it; empty: it does not come.
  static std::string Learned(TopologyScript* script, const std::string& host) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (script->Known(host).empty() && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
    return script->Known(host);
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.File("topology.sh");
};

TEST_F(TopologyScriptTest, AnswersForAHostAndIsAskedOnce) {
  TopologyScript script(
      Script("echo asked >> " + scratch_.File("log") + "; echo /hall/$# ; test \"$1\" = h1"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(script.RackOf("h1").value(), "/hall/1");
  EXPECT_EQ(std::filesystem::file_size(scratch_.File("log")), 6u);
}

TEST_F(TopologyScriptTest, ABoundedNumberOfAnswersIsKept) {
  TopologyScript script(Script("echo $1 >> " + scratch_.File("log") + "; echo /$1"),
                        {.max_hosts = 2});
  for (const char* host : {"h1", "h2", "h3", "h3", "h2"}) {
    EXPECT_EQ(script.RackOf(host).value(), std::string("/") + host);
  }
  EXPECT_EQ(std::filesystem::file_size(scratch_.File("log")), 9u) << "each was asked for once";
  EXPECT_EQ(script.RackOf("h1").value(), "/h1");
  EXPECT_EQ(std::filesystem::file_size(scratch_.File("log")), 12u) << "and this one again";
}

TEST_F(TopologyScriptTest, WhatIsNoRackIsRefused) {
  for (const char* output : {"", "rack", "/", "/a /b", "/a\n/b"}) {
    const absl::Status status = Ask(std::string("printf '%b' '") + output + "'").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << output << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("yes /rack").status())) << "endless output";
  EXPECT_TRUE(absl::IsInvalidArgument(Ask("echo /rack", "--option").status()));
  EXPECT_EQ(Ask("printf '/rack \\n'").value(), "/rack");
}

// A rack stands in answers to clients, and a string that is no UTF-8 would spoil the whole answer.
TEST_F(TopologyScriptTest, WhatIsNoTextIsNoRack) {
  for (const std::string& output : {std::string("/a\0b", 4), std::string("/a\xff"),
                                    std::string("/a\vb"), std::string("/a\x1b[2J")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(RacksOfOutput(output, 1).status())) << output;
  }
  using Racks = std::vector<std::string>;
  EXPECT_EQ(RacksOfOutput("/s\xc3\xbcq-1\r\n", 1).value(), Racks({"/s\xc3\xbcq-1"}));
  EXPECT_EQ(RacksOfOutput("/a /b\n/a\n", 3).value(), Racks({"/a", "/b", "/a"}));
  EXPECT_TRUE(absl::IsInvalidArgument(RacksOfOutput("/a /b", 3).status()));
}

TEST_F(TopologyScriptTest, FailuresAreNamedAndNotKept) {
  EXPECT_THAT(std::string(Ask("exit 3").status().message()), HasSubstr("exit code 3"));
  EXPECT_TRUE(absl::IsUnavailable(Ask("kill -9 $$").status()));
  EXPECT_FALSE(TopologyScript(scratch_.File("missing")).RackOf("h1").ok());
  TopologyScript script(Script("exit 1"));
  EXPECT_FALSE(script.RackOf("h1").ok());
  Script("echo /rack");
  EXPECT_EQ(script.RackOf("h1").value(), "/rack");
}

// What a thousand helpers ask that register at once, after a restart.
TEST_F(TopologyScriptTest, ManyHostsAreAskedForByFewProcesses) {
  const std::string go = scratch_.File("go");
  TopologyScript script(
      Script("until test -e " + go + "; do sleep 0.01; done; " +  // sleep-ok
             "echo process >> " + scratch_.File("log") + "; for host; do echo /rack/$host; done"),
      {.timeout = std::chrono::milliseconds(1)});
  for (int i = 0; i < 150; ++i) {
    const absl::Status late = script.RackOf("h" + std::to_string(i)).status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  }
  std::ofstream(go) << "go";
  for (int i = 0; i < 150; ++i) {
    const std::string host = "h" + std::to_string(i);
    EXPECT_EQ(Learned(&script, host), "/rack/" + host);
  }
  const size_t processes = std::filesystem::file_size(scratch_.File("log")) / 8;
  EXPECT_LE(processes, 3u) << "one with what had come, and then hundreds";
}

TEST_F(TopologyScriptTest, OneBadHostSpoilsNothingForTheOthers) {
  const std::string go = scratch_.File("go");
  // Also, it takes one host.
  TopologyScript script(
      Script("until test -e " + go + "; do sleep 0.01; done; " +  // sleep-ok
             "test $1 != bad && echo /rack/$1"),
      {.timeout = std::chrono::milliseconds(1), .pause = std::chrono::milliseconds(1)});
  for (const char* host : {"a", "bad", "c", "d"}) EXPECT_FALSE(script.RackOf(host).ok());
  std::ofstream(go) << "go";
  for (const char* host : {"a", "c", "d"}) {
    EXPECT_EQ(Learned(&script, host), std::string("/rack/") + host);
  }
  EXPECT_EQ(script.Known("bad"), "");
  Script("echo /mended");
  EXPECT_EQ(Learned(&script, "bad"), "/mended") << "it is asked again without a caller";
}

TEST_F(TopologyScriptTest, ARackThatComesLateIsTheNodesAllTheSame) {
  FakeClock clock;
  NodeRegistry nodes(&clock, std::chrono::seconds(5), {{"n3", "/table"}}, Script("exit 1"));
  for (const char* name : {"n1", "n2"}) ASSERT_TRUE(nodes.Register(FakeNode(name)).ok());
  nodes.Tick();
  EXPECT_EQ(nodes.Find("n1")->record.rack, "");
  nodes.SetRacks({{"n2", "/table"}});
  const uint64_t changes = nodes.changes();
  Script("echo /script");
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (nodes.Find("n1")->record.rack.empty() && std::chrono::steady_clock::now() < give_up) {
    nodes.Tick();
  }
  EXPECT_EQ(nodes.Find("n1")->record.rack, "/script") << "though it did not register again";
  EXPECT_EQ(nodes.Find("n2")->record.rack, "/table");
  EXPECT_GT(nodes.changes(), changes) << "plans look anew";
}

TEST_F(TopologyScriptTest, OneThatHangsIsKilledWithItsChildren) {
  const std::string pid_file = scratch_.File("pid");
  constexpr auto kShort = std::chrono::milliseconds(300);
  constexpr auto kLong = std::chrono::minutes(10);
  for (const char* output : {"", "exec >&-; ", "stop"}) {
    const bool stop = std::string(output) == "stop";
    const std::string body =
        (stop ? "" : output) + ("sleep 1000 & echo $! > " + pid_file + "; wait");
    auto script = std::make_unique<TopologyScript>(
        Script(body),
        TopologyScript::Options{.timeout = kShort, .run_timeout = stop ? Duration(kLong) : kShort});
    EXPECT_FALSE(script->RackOf("h1").ok());
    if (stop) script.reset();
    int pid = 0;
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 0);
    // It is somebody else's child by now, and may be waited for by nobody: gone or a zombie.
    std::string state;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    do {
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string word;
      state.clear();
      stat >> word >> word >> state;
    } while (!state.empty() && state != "Z" && std::chrono::steady_clock::now() < give_up);
    EXPECT_TRUE(state.empty() || state == "Z") << state;
  }
}

TEST_F(TopologyScriptTest, TheTableGoesBeforeTheScriptAndThatBeforeTheHelper) {
  FakeClock clock;
  NodeRegistry nodes(&clock, std::chrono::seconds(5), {{"n1", "/table"}},
                     Script("test $1 != n3 && echo /script"));
  for (const char* name : {"n1", "n2", "n3"}) {
    NodeRecord node = FakeNode(name);
    node.rack = "/helper";
    ASSERT_TRUE(nodes.Register(node).ok());
  }
  EXPECT_EQ(nodes.Find("n1")->record.rack, "/table");
  EXPECT_EQ(nodes.Find("n2")->record.rack, "/script");
  EXPECT_EQ(nodes.Find("n3")->record.rack, "/helper") << "the script fails for it";
}

}  // namespace
}  // namespace ecpipe::topology_script_test
