// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/helper_config.h"

#include <gtest/gtest.h>

#include <fstream>

#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::helper_config_test {
namespace {

class HelperConfigTest : public testing::Test {
 protected:
  absl::StatusOr<HelperConfig> Load(const std::string& more) {
    return LoadExactly(
        "[helper]\nnode_id = \"n1\"\ncoordinator = \"127.0.0.1:7700\"\nroots = "
        "[\"/blocks\"]\n" +
        more);
  }
  absl::StatusOr<HelperConfig> LoadExactly(const std::string& text) {
    std::ofstream(path_) << text;
    return LoadHelperConfig(path_);
  }
  absl::Status At(const std::string& where_and_what) const {
    return absl::InvalidArgumentError(path_ + where_and_what);
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.File("helper.toml");
};

TEST_F(HelperConfigTest, DefaultsAreLoopbackAndTheEnginesOwn) {
  const auto config = Load("");
  ASSERT_TRUE(config.ok()) << config.status();
  const SessionManager::Options defaults;
  EXPECT_EQ(config->node_id, "n1");
  EXPECT_EQ(config->roots, std::vector<std::string>{"/blocks"});
  EXPECT_FALSE(config->insecure);
  EXPECT_EQ(config->control_address, "127.0.0.1:7711");
  EXPECT_EQ(config->data_address, "127.0.0.1:7712");
  EXPECT_EQ(config->redis_address, "");
  EXPECT_EQ(config->web.listen, "");
  EXPECT_EQ(config->log.least_level, LogLevel::kInfo);
  EXPECT_EQ(config->drain_patience, std::chrono::seconds(30));
  EXPECT_EQ(config->sessions.max_sessions, defaults.max_sessions);
  EXPECT_EQ(config->sessions.max_buffer_bytes, defaults.max_buffer_bytes);
  EXPECT_EQ(config->sessions.part.ring_bytes, defaults.part.ring_bytes);
  EXPECT_EQ(config->sessions.part.stall_timeout, defaults.part.stall_timeout);
}

TEST_F(HelperConfigTest, ReadsEveryKey) {
  const auto config = Load(
      "rack = \"/r7\"\ninsecure = true\nstore = \"hdfs\"\nreport_seconds = 2.5\n"
      "[listen]\ncontrol = \"0.0.0.0:1\"\ndata = \"0.0.0.0:2\"\n"
      "advertise_control = \"node:1\"\nadvertise_data = \"[::1]:2\"\n"
      "[redis]\naddress = \"127.0.0.1:6379\"\n[web]\nlisten = \"127.0.0.1:9\"\n"
      "[log]\nlevel = \"debug\"\nformat = \"json\"\n"
      "[limits]\nmax_sessions = 7\nmax_buffer_bytes = \"64MiB\"\nring_bytes = 8192\n"
      "[timeouts]\nstall_seconds = 0.5\ndrain_seconds = 3\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rack, "/r7");
  EXPECT_EQ(config->report_interval, std::chrono::milliseconds(2500));
  EXPECT_TRUE(config->insecure);
  EXPECT_EQ(config->advertised_control_address, "node:1");
  EXPECT_EQ(config->advertised_data_address, "[::1]:2");
  EXPECT_EQ(config->redis_address, "127.0.0.1:6379");
  EXPECT_EQ(config->log.least_level, LogLevel::kDebug);
  EXPECT_EQ(config->log.format, LogFormat::kJson);
  EXPECT_EQ(config->sessions.max_sessions, 7u);
  EXPECT_EQ(config->sessions.max_buffer_bytes, uint64_t{64} << 20);
  EXPECT_EQ(config->sessions.part.ring_bytes, 8192u);
  EXPECT_EQ(config->sessions.part.stall_timeout, std::chrono::milliseconds(500));
  EXPECT_EQ(config->drain_patience, std::chrono::seconds(3));
}

TEST_F(HelperConfigTest, EachRequiredKeyIsMissed) {
  const std::string node = "node_id = \"n1\"\n";
  const std::string coordinator = "coordinator = \"h:1\"\n";
  const std::string roots = "roots = [\"/b\"]\n";
  EXPECT_EQ(LoadExactly("[helper]\n" + coordinator + roots).status(),
            At(": required key helper.node_id is missing"));
  EXPECT_EQ(LoadExactly("[helper]\n" + node + roots).status(),
            At(": required key helper.coordinator is missing"));
  EXPECT_EQ(LoadExactly("[helper]\n" + node + coordinator).status(),
            At(": required key helper.roots is missing"));
}

TEST_F(HelperConfigTest, EveryMistakeIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"store = \"zfs\"\n", ":5: helper.store: 'zfs' is not one of plain, hdfs, qfs"},
      {"store = \"qfs\"\nchunkserver = \"nowhere\"\n",
       ":6: helper.chunkserver: 'nowhere' is not HOST:PORT of a chunkserver, with a host of "
       "letters, "
       "digits, '.', '_' and '-'"},
      {"report_seconds = 0.05\n",
       ":5: helper.report_seconds: must be at least 0.1: each scan looks at all directories"},
      {"[endpoint]\naddress = \"/run/x\"\n",
       ":6: endpoint.address: '/run/x' is neither unix:/path with a path of at most 107 bytes nor "
       "tcp:host:port"},
      {"[endpoint]\nmode = \"rw\"\n",
       ":6: endpoint.mode: 'rw' is not an octal file mode such as \"0660\""},
      {"[redis]\naddress = \"nowhere\"\n",
       ":6: redis.address: 'nowhere' is not an address of the form host:port"},
      {"[listen]\nadvertise_data = \"h:x\"\n",
       ":6: listen.advertise_data: 'h:x' is not an address of the form host:port"},
      {"[limits]\nmax_sessions = 0\n", ":6: limits.max_sessions must be an integer from 1 to 4096"},
      {"[timeouts]\n\nstall_seconds = 0\n",
       ":7: timeouts.stall_seconds must be a number of seconds from 0.001 to 3600"},
      {"insecure = 1\n", ":5: helper.insecure must be true or false"},
      {"[log]\nlevel = \"loud\"\n",
       ":6: log.level: log level 'loud' is not one of debug, info, warning, error"},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(Load(text).status(), At(message)) << text;
  }
  EXPECT_EQ(LoadExactly("[helper]\nnode_id = \"a/b\"\ncoordinator = \"h:1\"\nroots = [\"/b\"]\n")
                .status(),
            At(":2: helper.node_id: not a valid id; an id is 1 to 255 letters, digits, '.', '_' or "
               "'-', and does not begin with '.'"));
  EXPECT_EQ(
      LoadExactly("[helper]\nnode_id = \"n\"\ncoordinator = \"h\"\nroots = [\"/b\"]\n").status(),
      At(":3: helper.coordinator: 'h' is not an address of the form host:port"));
}

TEST_F(HelperConfigTest, AnUnknownKeyRefusesTheStart) {
  const absl::Status status = Load("[limits]\nmax_session = 5\n").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(
      status.message().find(path_ + ":6: unknown key limits.max_session; known here: limits."),
      std::string::npos)
      << status;
}

}  // namespace
}  // namespace ecpipe::helper_config_test
