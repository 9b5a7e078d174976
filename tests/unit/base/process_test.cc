// SPDX-License-Identifier: Apache-2.0
// What a daemon writes where others look: its log and its ready file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/process/daemon.h"
#include "base/process/log.h"
#include "base/process/log_line.h"
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
