// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/progress.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/unique_fd.h"

namespace ecpipe::progress_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kErase = "\r\033[K";

class Painter : public testing::Test {
 protected:
  ProgressPainter Make(ProgressStyle style) { return {{.label = "photo", .style = style}, now_}; }
  // Paints every 200 ms for so long. What was written.
  std::string Run(ProgressPainter& painter, milliseconds time) {
    std::string written;
    for (milliseconds at{0}; at < time; at += milliseconds(200)) {
      now_ += milliseconds(200);
      progress_.done += 1024;
      written += painter.Paint(progress_, now_, 80);
    }
    return written;
  }

  TimePoint now_{};
  Progress progress_{.done = 0, .total = 1 << 20};
};

TEST_F(Painter, DrawsNoBarOfShortWork) {
  ProgressPainter painter = Make(ProgressStyle::kBar);
  EXPECT_EQ(Run(painter, milliseconds(400)), "");
  EXPECT_EQ(painter.Erase(), "");
}

TEST_F(Painter, RewritesTheBarInPlaceAndTakesItAway) {
  ProgressPainter painter = Make(ProgressStyle::kBar);
  const std::string written = Run(painter, seconds(3));
  EXPECT_THAT(written, StartsWith(std::string(kErase) + "photo ["));
  EXPECT_THAT(written, Not(HasSubstr("\n")));
  EXPECT_THAT(written, EndsWith("5 KiB/s  3:22 left"));
  EXPECT_EQ(painter.Erase(), kErase);
  EXPECT_EQ(painter.Erase(), "");
}

TEST_F(Painter, WritesALineEveryTenSeconds) {
  ProgressPainter painter = Make(ProgressStyle::kLines);
  EXPECT_EQ(Run(painter, milliseconds(9'800)), "");
  EXPECT_EQ(Run(painter, milliseconds(200)),
            "ecpipe: photo: 4 %, 0.0 of 1 MiB, 5 KiB/s, 3:15 left\n");
  const std::string written = Run(painter, seconds(60));
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 6);
  EXPECT_THAT(written, Not(HasSubstr("\r")));
  EXPECT_EQ(painter.Erase(), "");
}

TEST_F(Painter, LinesOfManyPiecesOfWorkStayRare) {
  ProgressPainter painter = Make(ProgressStyle::kLines);
  std::string written;
  for (int piece = 0; piece < 100; ++piece) {
    painter.Begin("piece " + std::to_string(piece), now_);
    progress_.done = 0;
    written += Run(painter, seconds(1));
  }
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 10);
  EXPECT_THAT(written, StartsWith("ecpipe: piece 9: "));
}

TEST_F(Painter, MeasuresEachPieceOfWorkByItself) {
  ProgressPainter painter = Make(ProgressStyle::kBar);
  Run(painter, seconds(20));
  painter.Begin("next", now_);
  progress_.done = 0;
  EXPECT_THAT(Run(painter, milliseconds(200)), EndsWith("- B/s  -:-- left"));
  progress_.total = 0;
  EXPECT_THAT(Run(painter, seconds(3)), EndsWith("5 KiB/s  0:04 so far"));
}

// Both ends of a terminal, whose output is collected.
class Terminal : public testing::Test {
 protected:
  Terminal() {
    int terminal = -1;
    int program = -1;
    winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&terminal, &program, nullptr, nullptr, &size), 0);
    terminal_ = UniqueFd(terminal);
    program_ = UniqueFd(program);
  }

  // Frames come fast, so that tests need not wait.
  ProgressOptions Options(ProgressStyle style = ProgressStyle::kBar) const {
    return {.label = "photo",
            .unit = "stripes",
            .fd = program_.get(),
            .style = style,
            .first_frame = milliseconds(1),
            .frame_interval = milliseconds(2),
            .line_interval = milliseconds(3)};
  }

  // Reads until the output has `wanted`; false after a time in which it would long have come.
  bool Await(const std::string& wanted) {
    for (int rounds = 0; rounds < 600; ++rounds) {
      if (output_.find(wanted) != std::string::npos) return true;
      pollfd waiting{terminal_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 100) <= 0) continue;
      char bytes[4096];
      const ssize_t got = ::read(terminal_.get(), bytes, sizeof bytes);
      if (got > 0) output_.append(bytes, static_cast<size_t>(got));
    }
    return false;
  }

  // What has been written so far, all of it: the mark comes after it.
  std::string Output() {
    EXPECT_EQ(::write(program_.get(), "<end>", 5), 5);
    EXPECT_TRUE(Await("<end>"));
    return output_.substr(0, output_.find("<end>"));
  }

  UniqueFd terminal_;
  UniqueFd program_;
  std::string output_;
};

TEST_F(Terminal, HasABarAndAPipeLines) {
  ::setenv("TERM", "xterm", 1);
  EXPECT_EQ(StyleFor(program_.get()), ProgressStyle::kBar);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  EXPECT_EQ(StyleFor(writing.get()), ProgressStyle::kLines);
  ::setenv("TERM", "dumb", 1);
  EXPECT_EQ(StyleFor(program_.get()), ProgressStyle::kLines);
  ::setenv("TERM", "xterm", 1);
}

TEST_F(Terminal, ShowsTheBarAndIsCleanAfterwards) {
  {
    ProgressDisplay display(Options());
    display.Callback()(1, 4);
    EXPECT_TRUE(Await("  25 %  1 of 4 stripes"));
    display.Callback()(3, 4);
    EXPECT_TRUE(Await("  75 %  3 of 4 stripes"));
  }
  EXPECT_THAT(Output(), EndsWith(kErase));
  EXPECT_THAT(output_, Not(HasSubstr("\n")));
}

TEST_F(Terminal, StallsShowAsSuch) {
  ProgressDisplay display(Options());
  display.Show({.done = 1, .total = 4});
  // Nobody tells anything more.
  EXPECT_TRUE(Await("  0/s  -:-- left"));
}

TEST_F(Terminal, LinesStayAboveTheBar) {
  {
    ProgressDisplay display(Options());
    display.Show({.done = 1, .total = 4});
    EXPECT_TRUE(Await("25 %"));
    display.Say("begins in 3 s");
    EXPECT_TRUE(Await(std::string(kErase) + "begins in 3 s\r\n" + kErase + "photo ["));
  }
  EXPECT_THAT(Output(), EndsWith(kErase));
}

TEST_F(Terminal, WhatIsSaidAtTheEndIsNotLost) {
  {
    ProgressDisplay(Options()).Say("that was all");
  }
  EXPECT_EQ(Output(), "that was all\r\n");
}

TEST_F(Terminal, StaysUntouchedWhenNothingIsToBeShown) {
  {
    ProgressDisplay display(Options(ProgressStyle::kNone));
    display.Say("nobody reads this");
    display.Begin("photo");
    display.Callback()(1, 4);
  }
  {
    ProgressDisplay display(Options());
  }  // nothing was told
  EXPECT_EQ(Output(), "");
}

TEST_F(Terminal, LinesHaveNoControlCharacters) {
  {
    ProgressDisplay display(Options(ProgressStyle::kLines));
    display.Show({.done = 1, .total = 4});
    EXPECT_TRUE(Await("ecpipe: photo: 25 %, 1 of 4 stripes"));
  }
  EXPECT_THAT(Output(), Not(HasSubstr("\033")));
}

TEST_F(Terminal, TakesProgressFromManyThreads) {
  ProgressDisplay display(Options());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&display] {
      const ProgressFn tell = display.Callback();
      for (uint64_t done = 0; done <= 1000; ++done) tell(done, 1000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(Await("100 %"));
}

// In a process of its own, which the signal ends.
void ShowForEver(const ProgressOptions& options) {
  ProgressDisplay display(options);
  display.Show({.done = 1, .total = 4});
  for (int i = 0; i < 60; ++i) ::sleep(1);
  ::_exit(1);
}

TEST_F(Terminal, IsCleanAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM}) {
    output_.clear();
    const pid_t child = ::fork();
    if (child == 0) ShowForEver(Options());
    ASSERT_GT(child, 0);
    EXPECT_TRUE(Await("25 %"));
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_THAT(Output(), EndsWith(kErase));
  }
}

TEST_F(Terminal, SignalsThatAreIgnoredStayIgnored) {
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before{};
  ::sigaction(SIGINT, &ignore, &before);
  {
    ProgressDisplay display(Options());
    ::raise(SIGINT);
    display.Show({.done = 1, .total = 4});
    EXPECT_TRUE(Await("25 %"));
  }
  struct sigaction after{};
  ::sigaction(SIGINT, &before, &after);
  EXPECT_EQ(after.sa_handler, SIG_IGN);
}

}  // namespace
}  // namespace ecpipe::progress_test
