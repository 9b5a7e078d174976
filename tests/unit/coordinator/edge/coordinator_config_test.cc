// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/coordinator_config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_join.h"
#include "coordinator/planning/scheme.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::coordinator_config_test {
namespace {

class CoordinatorConfigTest : public testing::Test {
 protected:
  absl::StatusOr<CoordinatorConfig> Load(const std::string& more) {
    std::ofstream(path_) << "[coordinator]\ndata_directory = \"/data\"\n" << more;
    return LoadCoordinatorConfig(path_);
  }
  absl::Status At(const std::string& where_and_what) const {
    return absl::InvalidArgumentError(path_ + where_and_what);
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.File("coordinator.toml");
};

TEST_F(CoordinatorConfigTest, DefaultsAreLoopbackAndTheCoordinatorsOwn) {
  const auto config = Load("");
  ASSERT_TRUE(config.ok()) << config.status();
  const RepairCoordinator::Options defaults;
  EXPECT_EQ(config->listen, "127.0.0.1:7700");
  EXPECT_EQ(config->data_directory, "/data");
  EXPECT_FALSE(config->insecure);
  EXPECT_EQ(config->web.listen, "");
  EXPECT_EQ(config->log.least_level, LogLevel::kInfo);
  EXPECT_EQ(config->log.format, LogFormat::kText);
  EXPECT_EQ(config->default_transport, TransportKind::kTcp);
  EXPECT_EQ(config->repairs.planner.default_scheme, "auto");
  EXPECT_EQ(config->repairs.planner.default_slice_bytes, kDefaultSliceBytes);
  EXPECT_EQ(config->repairs.planner.link_bytes_per_second, 125e6);
  EXPECT_EQ(config->repairs.handout_timeout, defaults.handout_timeout);
  EXPECT_EQ(config->repairs.dead_after, defaults.dead_after);
  EXPECT_EQ(config->repairs.abandon_after, defaults.abandon_after);
  EXPECT_EQ(config->repairs.max_running, defaults.max_running);
  EXPECT_EQ(config->repairs.journal_keep, defaults.journal_keep);
  EXPECT_EQ(config->reported.blocks, ReportedBlocks::Limits().blocks);
}

TEST_F(CoordinatorConfigTest, ReadsTheTopologyFiles) {
  std::ofstream(scratch_.File("racks")) << "node-1 /r1\n";
  std::ofstream(scratch_.File("links")) << "/r1 /r2 400\n";
  const auto config = Load("[topology]\nracks = \"" + scratch_.File("racks") + "\"\nlinks = \"" +
                           scratch_.File("links") + "\"\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->repairs.racks.at("node-1"), "/r1");
  EXPECT_EQ(config->repairs.links->at({"/r1", "/r2"}), 50e6);
  EXPECT_FALSE(Load("[topology]\nracks = \"/nowhere\"\n").ok());
  EXPECT_FALSE(Load("[topology]\nlinks = \"" + scratch_.File("racks") + "\"\n").ok());
}

TEST_F(CoordinatorConfigTest, ReadsEveryKey) {
  const auto config = Load(
      "listen = \"0.0.0.0:1\"\ninsecure = true\n[web]\nlisten = \"127.0.0.1:9\"\n"
      "[log]\nlevel = \"warning\"\n"
      "[defaults]\nscheme = \"ppr\"\nslice_bytes = \"1MiB\"\ntransport = \"redis\"\n"
      "link_mbit = 10000\n"
      "[timeouts]\nhandout_seconds = 0.5\ndead_after_seconds = 7\nabandon_after_seconds = 60\n"
      "[limits]\nmax_running = 3\njournal_keep = 0\nrepair_mbit = 800\nmax_reported_blocks = 5\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->listen, "0.0.0.0:1");
  EXPECT_TRUE(config->insecure);
  EXPECT_EQ(config->web.listen, "127.0.0.1:9");
  EXPECT_EQ(config->log.least_level, LogLevel::kWarning);
  EXPECT_EQ(config->repairs.planner.default_scheme, "ppr");
  EXPECT_EQ(config->repairs.planner.default_slice_bytes, 1u << 20);
  EXPECT_EQ(config->default_transport, TransportKind::kRedis);
  EXPECT_EQ(config->repairs.planner.link_bytes_per_second, 1.25e9);
  EXPECT_EQ(config->repairs.handout_timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(config->repairs.dead_after, std::chrono::seconds(7));
  EXPECT_EQ(config->repairs.abandon_after, std::chrono::seconds(60));
  EXPECT_EQ(config->repairs.max_running, 3u);
  EXPECT_EQ(config->repair_bytes_per_second, 100e6);
  EXPECT_EQ(config->repairs.journal_keep, 0);
  EXPECT_EQ(config->reported.blocks, 5u);
}

TEST_F(CoordinatorConfigTest, EveryMistakeIsNamedWithItsLine) {
  const std::pair<const char*, std::string> cases[] = {
      {"[defaults]\nscheme = \"magic\"\n", ":4: defaults.scheme: 'magic' is not one of " +
                                               absl::StrJoin(SchemeNames(), ", ") + ", auto"},
      {"[defaults]\ntransport = \"udp\"\n",
       ":4: defaults.transport: 'udp' is not one of tcp, redis"},
      {"[defaults]\nslice_bytes = \"65MiB\"\n",
       ":4: defaults.slice_bytes must be a size from 1 B to 64 MiB, e.g. 65536 or \"64KiB\""},
      {"[defaults]\nlink_mbit = 0\n",
       ":4: defaults.link_mbit must be an integer from 1 to 10000000"},
      {"[timeouts]\nhandout_seconds = 61\n",
       ":4: timeouts.handout_seconds must be a number of seconds from 0.001 to 60"},
      {"[limits]\nmax_running = 0\n",
       ":4: limits.max_running must be an integer from 1 to 1000000"},
      {"[limits]\n\njournal_keep = -1\n",
       ":5: limits.journal_keep must be an integer from 0 to 10000000"},
      {"insecure = \"yes\"\n", ":3: coordinator.insecure must be true or false"},
      {"[log]\nlevel = \"loud\"\n",
       ":4: log.level: log level 'loud' is not one of debug, info, warning, error"},
      {"[log]\nformat = \"xml\"\n", ":4: log.format: log format 'xml' is not one of text, json"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Load(text).status(), At(message)) << text;
  }
}

TEST_F(CoordinatorConfigTest, RecoveriesCanBeBounded) {
  const auto config = Load(
      "[recovery]\nstreams_per_node = 3\nmax_attempts = 9\nfirst_pause_seconds = 0.5\n"
      "longest_pause_seconds = 7\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->recoveries.streams_per_node, 3u);
  EXPECT_EQ(config->recoveries.queue.max_attempts, 9);
  EXPECT_EQ(config->recoveries.queue.first_pause, std::chrono::milliseconds(500));
  EXPECT_EQ(config->recoveries.queue.longest_pause, std::chrono::seconds(7));
  EXPECT_FALSE(Load("[recovery]\nstreams_per_node = 0\n").ok());
}

TEST_F(CoordinatorConfigTest, ANameNodeCanBeNamed) {
  EXPECT_TRUE(Load("")->namenode.urls.empty());
  const auto config = Load(
      "[hdfs]\nnamenodes = [\"http://nn:9870\", \"http://mm:9870\"]\nuser = \"alice\"\npath = "
      "\"/ec\"\n"
      "refresh_seconds = 60\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->namenode.urls, (std::vector<std::string>{"http://nn:9870", "http://mm:9870"}));
  EXPECT_EQ(config->namenode.user, "alice");
  EXPECT_EQ(config->namenode.path, "/ec");
  EXPECT_EQ(config->namenode.refresh, std::chrono::seconds(60));
  for (const char* url : {"http://nn", "https://[::1]:9871"}) {
    EXPECT_TRUE(Load("[hdfs]\nnamenodes = [\"http://a\", \"" + std::string(url) + "\"]\n").ok())
        << url;
  }
  for (const char* url : {"nn:9870", "file:///etc/passwd", "ftp://nn:1", "http://", "http://nn:x",
                          "http://nn:9870/fsck", "http://user@nn:9870", "http://nn:9870?x"}) {
    EXPECT_FALSE(Load("[hdfs]\nnamenodes = [\"http://a\", \"" + std::string(url) + "\"]\n").ok())
        << url;
  }
  for (const char* bad : {"user = \"\"", "path = \"ec\"", "refresh_seconds = 0"}) {
    EXPECT_FALSE(Load("[hdfs]\nnamenodes = [\"http://nn:1\"]\n" + std::string(bad) + "\n").ok());
  }
}

TEST_F(CoordinatorConfigTest, AMetaserverCanBeNamed) {
  EXPECT_TRUE(Load("")->qfs.metaservers.empty());
  const auto config =
      Load("[qfs]\nmetaservers = [\"10.0.0.1:20000\"]\ntimeout_seconds = 3\nfresh_seconds = 1\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->qfs.metaservers, std::vector<std::string>{"10.0.0.1:20000"});
  EXPECT_EQ(config->qfs.timeout, std::chrono::seconds(3));
  EXPECT_EQ(config->qfs.fresh, std::chrono::seconds(1));
  for (const char* bad : {"metaservers = [\"nowhere\"]", "metaservers = [\"h:0x\"]",
                          "timeout_seconds = 0", "fresh_seconds = 61", "metaserver = \"h:1\""}) {
    EXPECT_FALSE(Load("[qfs]\n" + std::string(bad) + "\n").ok()) << bad;
  }
}

TEST_F(CoordinatorConfigTest, WhatIsMissingOrUnknownRefusesTheStart) {
  std::ofstream(path_) << "[coordinator]\n";
  EXPECT_EQ(LoadCoordinatorConfig(path_).status(),
            At(": required key coordinator.data_directory is missing"));
  const absl::Status status = Load("colour = 1\n").status();
  EXPECT_NE(status.message().find(path_ + ":3: unknown key coordinator.colour"), std::string::npos)
      << status;
  EXPECT_TRUE(absl::IsNotFound(LoadCoordinatorConfig(scratch_.File("absent")).status()));
}

}  // namespace
}  // namespace ecpipe::coordinator_config_test
