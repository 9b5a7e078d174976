// SPDX-License-Identifier: Apache-2.0
#include "rpc/audit_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace ecpipe {
namespace {

using std::chrono::seconds;

class AuditFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  std::unique_ptr<AuditFile> OpenPipe(AuditFile::Options options) {
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    return AuditFile::Open(path_, options).value();
  }

  // The whole lines that come out of the pipe, until one has this word.
  std::vector<std::string> ReadUntil(const std::string& word) {
    const UniqueFd pipe(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    const TimePoint deadline = Clock::System().Now() + seconds(60);
    std::vector<std::string> lines;
    std::string line;
    while (Clock::System().Now() < deadline) {
      pollfd ready{.fd = pipe.get(), .events = POLLIN, .revents = 0};
      ::poll(&ready, 1, 100);
      std::array<char, 4096> buffer{};
      const ssize_t count = ::read(pipe.get(), buffer.data(), buffer.size());
      for (ssize_t i = 0; i < count; ++i) {
        if (buffer[i] != '\n') {
          line += buffer[i];
          continue;
        }
        lines.push_back(std::exchange(line, ""));
        if (lines.back().find(word) != std::string::npos) return lines;
      }
    }
    ADD_FAILURE() << "no line has the word " << word << "; there are " << lines.size();
    return lines;
  }

  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ = testing::TempDir() + "ecpipe-audit-file-" + std::to_string(::getpid());
};

TEST_F(AuditFileTest, APipeThatNobodyReadsHoldsUpNobodyAndIsToldWhatItMissed) {
  const auto file = OpenPipe({.most_queued_bytes = 100'000});
  constexpr int kLines = 2000;
  for (int i = 0; i < kLines; ++i) file->Append(std::to_string(i) + std::string(96, '.') + "\n");
  const uint64_t left_out = file->left_out();
  EXPECT_GT(left_out, 0u);
  EXPECT_LT(left_out, uint64_t{kLines});
  const std::vector<std::string> lines = ReadUntil("left_out=");
  ASSERT_EQ(lines.size(), kLines - left_out + 1);
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_EQ(lines[i].substr(0, lines[i].find('.')), std::to_string(i));
  }
  EXPECT_NE(lines.back().find("left_out=" + std::to_string(left_out)), std::string::npos);

  // A reader that comes again finds what was written meanwhile.
  file->Append("again\n");
  EXPECT_EQ(ReadUntil("again").back(), "again");
}

TEST_F(AuditFileTest, TheEndWritesWhatIsQueued) {
  auto file = AuditFile::Open(path_).value();
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    file->Append(std::to_string(i) + "\n");
    all += std::to_string(i) + "\n";
  }
  file->LeaveOut();
  file->LeaveOut();
  file.reset();
  const std::string text = Text();
  EXPECT_EQ(text.substr(0, all.size()), all);
  EXPECT_NE(text.find(" left_out="), std::string::npos);
}

TEST_F(AuditFileTest, TheEndWaitsForNoPipeThatNobodyReads) {
  auto file = OpenPipe({.wait_at_end = std::chrono::milliseconds(1)});
  file->Append("lost\n");
  testing::internal::CaptureStderr();
  file.reset();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("ERROR audit.lost"), std::string::npos);
}

TEST_F(AuditFileTest, WhatCannotBeWrittenIsRefusedAtTheStart) {
  const absl::Status status = AuditFile::Open(path_ + "/no/such/folder").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace ecpipe
