// SPDX-License-Identifier: Apache-2.0
// What a daemon writes where others look: its log and its ready file.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/process/config_troubles.h"
#include "base/process/daemon.h"
#include "base/process/daemon_main.h"
#include "base/process/directory_lock.h"
#include "base/process/log.h"
#include "base/process/log_line.h"
#include "base/unique_fd.h"
#include "nlohmann/json.hpp"
#include "unit/base/fifo_reader.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe::process_test {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

std::string Logged(const std::string& value) {
  testing::internal::CaptureStderr();
  Log(LogLevel::kError, "test.event", {{"value", value}});
  return testing::internal::GetCapturedStderr();
}

struct NoConfig {
  LogSettings log;
  ConfigValues values;
};

struct ServerWithoutThreads {
  static ConfigTroubles Check(const NoConfig&) { return {}; }
  static absl::StatusOr<std::unique_ptr<ServerWithoutThreads>> Start(const NoConfig&) {
    throw std::system_error(EAGAIN, std::generic_category(), "no thread");
  }
  static RunningConfig::Changes Reload(const NoConfig&) { return {}; }
};

TEST(DaemonMain, AThreadThatCannotBeHadAtTheStartIsAnErrorThatTimeMayMend) {
  const auto load = [](const std::string&, auto) { return absl::StatusOr<NoConfig>(NoConfig()); };
  testing::internal::CaptureStderr();
  EXPECT_EQ(
      Serve<ServerWithoutThreads>(
          "ecpipe-test", {}, load, [](const auto&, auto&) { return Serving(); }, [](auto&) {}),
      1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("no thread"));
}

TEST(DirectoryLock, OneAtATimeAndTheErrorNamesTheDirectoryAndTheProcess) {
  const ScratchDirectory directory;
  const std::string path = directory.File("state");
  std::filesystem::create_directory(path);
  {
    const auto held = DirectoryLock::Take(path, "lock");
    ASSERT_TRUE(held.ok()) << held.status();
    const absl::Status second = DirectoryLock::Take(path, "lock").status();
    EXPECT_TRUE(absl::IsFailedPrecondition(second)) << second;
    EXPECT_THAT(std::string(second.message()),
                testing::AllOf(testing::StartsWith(path + " is in use by process " +
                                                   std::to_string(::getpid()) + ","),
                               testing::HasSubstr(path + "/lock")));
  }
  EXPECT_TRUE(DirectoryLock::Take(path, "lock").ok()) << "the holder has gone";
  EXPECT_FALSE(DirectoryLock::Take(directory.File("missing"), "lock").ok());
}

TEST(Log, NoCharacterIsObeyed) {
  const std::pair<std::string, const char*> cases[] = {
      {"plain", "value=plain\n"},
      {"Gr\xc3\xb6\xc3\x9f"
       "e",
       "value=Gr\xc3\xb6\xc3\x9f"
       "e\n"},
      {"a b", "value=\"a b\"\n"},
      {"a\"b\\c d", "value=\"a\\\"b\\\\c d\"\n"},
      {"a\nERROR forged", "value=\"a?ERROR forged\"\n"},
      {"\x1b[2J", "value=?[2J\n"},
      {"\x7f", "value=?\n"},
      {"\xc2\x9b"
       "2J",
       "value=?2J\n"},            // the C1 form of ESC [
      {"\xc2\x85", "value=?\n"},  // next line
      {"\xe2\x80\xa8"
       "x",
       "value=?x\n"},  // line separator
      {"\xe2\x80\xae"
       "x",
       "value=?x\n"},  // right to left
      {"\xe2\x81\xa6"
       "x",
       "value=?x\n"},  // isolate
      {"\xe2\x80\x8b"
       "x",
       "value=?x\n"},  // no width
      {"\xef\xbb\xbf"
       "x",
       "value=?x\n"},
      {"\xe2\x82\xac", "value=\xe2\x82\xac\n"},  // the euro stays
      {"\xff\xfe", "value=??\n"},                // no UTF-8
      {"\xc2", "value=?\n"},
  };
  for (const auto& [value, line] : cases) EXPECT_THAT(Logged(value), EndsWith(line));
}

// The next lines as JSON, for the life of this.
class InJson {
 public:
  InJson() { SetLog({.format = LogFormat::kJson}); }
  ~InJson() { SetLog({}); }
};

TEST(Log, IsAnObjectALineInJson) {
  const InJson json;
  for (const auto& [value, shown] : {std::pair<std::string, std::string>{"a b", "a b"},
                                     {"a\"b\\c d", "a\"b\\c d"},
                                     {"a\n{}", "a?{}"},
                                     {"\x1b[2J", "?[2J"},
                                     {"\xe2\x80\xa8x", "?x"},
                                     {"\xff\xfe", "??"},
                                     {"", ""}}) {
    const std::string line = Logged(value);
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
    const auto object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_EQ(object.size(), 4u) << line;
    EXPECT_THAT(object.value("time", ""), MatchesRegex("....-..-..T..:..:......Z"));
    EXPECT_EQ(object.value("level", ""), "ERROR");
    EXPECT_EQ(object.value("event", ""), "test.event");
    EXPECT_EQ(object.value("value", "none"), shown);
  }
}

TEST(Log, ALineWithoutLevelAndEventHasNeither) {
  EXPECT_THAT(LogLine("", "", {{"caller", "node-1"}}), EndsWith("Z caller=node-1\n"));
  const InJson json;
  EXPECT_THAT(LogLine("", "", {{"caller", "node-1"}}), EndsWith("Z\",\"caller\":\"node-1\"}\n"));
}

TEST(Log, TheJournalIsToldThePriority) {
  SetLog({.in_journal = true});
  EXPECT_THAT(Logged("x"), MatchesRegex("<3>....-..-..T.* ERROR test.event value=x\n"));
  SetLog({});
  EXPECT_THAT(Logged("x"), MatchesRegex("....-..-..T.* ERROR test.event value=x\n"));
}

// Its reader has stopped.
TEST(Log, WaitsForNobody) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const UniqueFd before(::dup(STDERR_FILENO));
  ASSERT_GE(::dup2(writer.get(), STDERR_FILENO), 0);
  writer.reset();
  const std::string value(1000, 'x');
  constexpr int kLines = 1000;  // far more than the pipe holds
  for (int i = 0; i < kLines; ++i) Log(LogLevel::kError, "test.event", {{"value", value}});
  std::string text;
  const auto read_all = [&] {
    ::fcntl(reader.get(), F_SETFL, O_NONBLOCK);
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::read(reader.get(), piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<size_t>(got));
    }
  };
  read_all();
  Log(LogLevel::kError, "test.again", {});
  read_all();
  ::dup2(before.get(), STDERR_FILENO);
  const auto lines_of = [&](const std::string& event) {
    int lines = 0;
    for (size_t at = 0; (at = text.find(event, at)) != std::string::npos; ++at) ++lines;
    return lines;
  };
  const int whole = static_cast<int>(std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(lines_of("test.again"), 1);
  EXPECT_EQ(lines_of("log.left_out"), 1);
  EXPECT_LT(whole, kLines);
  EXPECT_THAT(text, testing::HasSubstr(" ERROR test.again\n"));
}

// systemd does not start a daemon again after 2.
TEST(ExitCode, IsTwoForWhatOnlyAnEditMends) {
  const absl::Status bad = absl::InvalidArgumentError("a.toml:3: unknown key");
  const absl::Status missing = absl::NotFoundError("open /mnt/1/blocks: No such file or directory");
  EXPECT_EQ(Refuse("p", bad), 2);
  EXPECT_EQ(Refuse("p", missing), 2) << "there is no such configuration file";
  EXPECT_EQ(Refuse("p", bad, MendOfStart(bad)), 2);
  for (const absl::Status& later :
       {missing, absl::UnavailableError("allow_users: there is no user x"),
        absl::PermissionDeniedError("open the audit file")}) {
    EXPECT_EQ(Refuse("p", later, MendOfStart(later)), 1) << later;
  }
}

TEST(ExitCode, IsOneForTroublesWithFilesThatTheConfigurationNames) {
  ConfigTroubles troubles;
  troubles.AddOfFile("tls.key", absl::InvalidArgumentError("there is no such file"));
  EXPECT_TRUE(troubles.MayMend());
  troubles.Add("listen.data", absl::InvalidArgumentError("no address"));
  EXPECT_FALSE(troubles.MayMend());
}

TEST(ReadyFile, WhatIsNoFileStays) {
  const ScratchDirectory scratch;
  const std::string fifo = scratch.File("fifo");
  const std::string link = scratch.File("ready");
  FifoReader reader(fifo);
  std::filesystem::create_symlink(fifo, link);
  const absl::Status written = WriteReadyFile(link, {{"listen", "127.0.0.1:1"}});
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_EQ(reader.Finish(), "{\"listen\": \"127.0.0.1:1\"}\n");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
}

TEST(ReadyFile, FollowsNoLink) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("ready");
  const std::string victim = scratch.File("victim");
  std::ofstream(victim) << "as it was";
  for (const char* link : {"ready", "ready.tmp"}) {
    std::filesystem::create_symlink(victim, scratch.File(link));
  }
  ASSERT_TRUE(WriteReadyFile(path, {{"listen", "127.0.0.1:1"}}).ok());
  std::string kept;
  std::getline(std::ifstream(victim), kept);
  EXPECT_EQ(kept, "as it was");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  std::string said;
  std::getline(std::ifstream(path), said);
  EXPECT_EQ(said, "{\"listen\": \"127.0.0.1:1\"}");
}

}  // namespace
}  // namespace ecpipe::process_test
