// SPDX-License-Identifier: Apache-2.0
#include "rpc/audit_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace ecpipe::audit_file_test {
namespace {

using std::chrono::seconds;

class AuditFileTest : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    std::filesystem::remove(path_);
    std::filesystem::remove(rotated_);
  }

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

  static std::string Text(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // The file is looked for once a second.
  static bool WaitFor(const std::function<bool()>& condition) {
    const TimePoint give_up = Clock::System().Now() + seconds(60);
    while (!condition() && Clock::System().Now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // sleep-ok: a thread's progress
    }
    return condition();
  }

  const std::string path_ = testing::TempDir() + "ecpipe-audit-file-" + std::to_string(::getpid());
  const std::string rotated_ = path_ + ".1";
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
  // Each line that was taken is there once and in order. The thread takes the first one off the
  // queue at any time, and so makes room for any other.
  int before = -1;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const int number = std::stoi(lines[i]);
    EXPECT_GT(number, before);
    before = number;
    EXPECT_EQ(lines[i], std::to_string(number) + std::string(96, '.'));
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
  const std::string text = Text(path_);
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

TEST_F(AuditFileTest, ANewFileThatCannotBeOpenedIsToldOfAndTheOldOneGoesOn) {
  auto file = AuditFile::Open(path_).value();
  std::filesystem::rename(path_, rotated_);
  std::filesystem::create_directory(path_);
  testing::internal::CaptureStderr();
  std::string all;
  EXPECT_TRUE(WaitFor([&] {
    const std::string line = std::to_string(all.size()) + "\n";
    file->Append(line);
    all += line;
    return file->reopen_failures() >= 2;
  }));
  std::filesystem::remove(path_);
  EXPECT_TRUE(WaitFor([&] {
    file->Append("after\n");
    return !Text(path_).empty();
  }));
  file.reset();
  EXPECT_EQ(Text(rotated_).substr(0, all.size()), all);
  EXPECT_EQ(Text(path_).substr(0, 6), "after\n");
  const std::string said = testing::internal::GetCapturedStderr();
  const size_t told = said.find("WARNING audit.not_reopened");
  EXPECT_NE(told, std::string::npos) << said;
  EXPECT_EQ(said.find("audit.not_reopened", told + 20), std::string::npos) << "once is enough";
  EXPECT_NE(said.find("open the new one"), std::string::npos) << said;
}

// The line is longer than what the pipe takes, so that it is half written when the file changes.
TEST_F(AuditFileTest, ALineIsNotDividedBetweenTwoFiles) {
  const auto file = OpenPipe({});
  const UniqueFd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string line = std::string(1 << 20, 'x') + "\n";
  file->Append(line);
  EXPECT_TRUE(WaitFor([&] {
    int waiting = 0;
    return ::ioctl(reader.get(), FIONREAD, &waiting) == 0 && waiting > 0;
  }));
  std::filesystem::rename(path_, rotated_);
  EXPECT_TRUE(
      WaitFor([&] { return std::filesystem::exists(path_) && Text(path_).ends_with('\n'); }));
  EXPECT_EQ(Text(path_).size(), line.size());
}

// Its disk may be mounted later: the service manager starts the daemon again.
TEST_F(AuditFileTest, WhatCannotBeWrittenIsRefusedAtTheStart) {
  const absl::Status status = AuditFile::Open(path_ + "/no/such/folder").status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
}

}  // namespace
}  // namespace ecpipe::audit_file_test
