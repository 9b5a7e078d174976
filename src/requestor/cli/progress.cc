// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/progress.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "requestor/cli/terminal.h"

namespace ecpipe {
namespace {

constexpr std::string_view kEraseLine = "\r\033[K";

// The terminal on which this process has a bar, or one of these. Signal handlers use it too.
constexpr int kNoBar = -1;
constexpr int kDrawing = -2;
constexpr int kExiting = -3;  // nothing is drawn any more
std::atomic<int> bar_fd{kNoBar};
static_assert(std::atomic<int>::is_always_lock_free);

// In one call, so that nobody else's output comes between. What does not go out is not worth an
// error.
void WriteOnce(int fd, std::string_view text) {
  [[maybe_unused]] const ssize_t put = ::write(fd, text.data(), text.size());
}

// Of its controlling terminal. Drawing would spoil the shell's line, or stop the process (TOSTOP).
bool InBackground(int fd) {
  const pid_t foreground = ::tcgetpgrp(fd);
  return foreground >= 0 && foreground != ::getpgrp();
}

void BlockAllSignals() {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

ProgressStyle StyleFor(int fd) {
  return IsScreen(fd) ? ProgressStyle::kBar : ProgressStyle::kLines;
}

ProgressPainter::ProgressPainter(const ProgressOptions& options, TimePoint begun)
    : label_(options.label),
      unit_(options.unit),
      style_(options.style),
      line_interval_(options.line_interval),
      first_frame_(begun + options.first_frame),
      begun_(begun),
      next_line_(begun + options.line_interval) {}

void ProgressPainter::Begin(const std::string& label, TimePoint now) {
  label_ = label;
  begun_ = now;
  meter_ = RateMeter();
}

std::string ProgressPainter::Paint(const Progress& progress, TimePoint now, size_t columns) {
  meter_.Add(now, progress.done);
  if (now < (style_ == ProgressStyle::kBar ? first_frame_ : next_line_)) return "";
  const ProgressView view =
      ViewOf(label_, unit_, progress, meter_.PerSecond(), Seconds(now - begun_));
  if (style_ == ProgressStyle::kBar) {
    drawn_ = true;
    return std::string(kEraseLine) + BarLine(view, columns);
  }
  next_line_ = now + line_interval_;
  return "ecpipe: " + LogLine(view) + "\n";
}

std::string ProgressPainter::Erase() {
  return std::exchange(drawn_, false) ? std::string(kEraseLine) : "";
}

// Erases the bar before a signal ends the process.
class ProgressDisplay::SignalHandlers {
 public:
  SignalHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction erase{};
      erase.sa_handler = [](int signal) {
        EraseForExit();
        ::signal(signal, SIG_DFL);
        ::raise(signal);  // ends the process when the handler returns
      };
      ::sigaction(kSignals[i], nullptr, &before_[i]);
      if (IsDefault(before_[i])) ::sigaction(kSignals[i], &erase, nullptr);
    }
  }
  ~SignalHandlers() {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (IsDefault(before_[i])) ::sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM};

  static bool IsDefault(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
  }

  std::array<struct sigaction, kSignals.size()> before_{};
};

ProgressDisplay::ProgressDisplay(ProgressOptions options) : options_(std::move(options)) {
  if (options_.style == ProgressStyle::kNone) return;
  if (options_.style == ProgressStyle::kBar) signal_handlers_ = std::make_unique<SignalHandlers>();
  // Where the system has no thread, nothing is shown.
  absl::StatusOr<Thread> thread = Thread::Start([this] { Run(); });
  if (thread.ok()) thread_ = *std::move(thread);
}

ProgressDisplay::~ProgressDisplay() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    turn_.ending = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void ProgressDisplay::Show(const Progress& progress) {
  MutexLock lock(&mutex_);
  turn_.progress = progress;  // the thread looks at it with the next frame
}

ProgressFn ProgressDisplay::Callback() {
  return [this](uint64_t done, uint64_t total) { Show({done, total, std::nullopt, std::nullopt}); };
}

void ProgressDisplay::Begin(const std::string& label) {
  MutexLock lock(&mutex_);
  turn_.begun = label;
  turn_.progress.reset();
}

void ProgressDisplay::Say(const std::string& line) {
  if (options_.style == ProgressStyle::kNone) return;
  MutexLock lock(&mutex_);
  turn_.said += line + "\n";
  changed_.NotifyOne();
}

void ProgressDisplay::EraseForExit() {
  // A terminal that takes nothing (Ctrl-S) must not hold up the exit for long.
  constexpr int kRounds = 100;
  constexpr timespec kRound{0, 1'000'000};
  for (int i = 0; i < kRounds; ++i) {
    int now = bar_fd.load();
    if (now == kDrawing) {
      ::nanosleep(&kRound, nullptr);  // sleep-ok: a signal handler can await nothing
    } else if (bar_fd.compare_exchange_strong(now, kExiting)) {
      if (now >= 0) WriteOnce(now, kEraseLine);
      return;
    }
  }
}

ProgressDisplay::Turn ProgressDisplay::Await(TimePoint deadline) {
  MutexLock lock(&mutex_);
  while (!turn_.ending && turn_.said.empty() && changed_.WaitUntil(lock, deadline)) {
  }
  Turn turn = turn_;
  turn_.said.clear();
  turn_.begun.reset();
  return turn;
}

void ProgressDisplay::Draw(const std::string& frame) const {
  if (frame.empty()) return;
  if (options_.style == ProgressStyle::kLines) return WriteOnce(options_.fd, frame);
  if (InBackground(options_.fd)) return;
  int before = bar_fd.load();
  if (before == kExiting || !bar_fd.compare_exchange_strong(before, kDrawing)) return;
  WriteOnce(options_.fd, frame);
  bar_fd = options_.fd;
}

void ProgressDisplay::Run() {
  BlockAllSignals();  // they are for the threads that work
  const Clock& clock = Clock::System();
  ProgressPainter painter(options_, clock.Now());
  while (true) {
    const Turn turn = Await(clock.Now() + options_.frame_interval);
    const TimePoint now = clock.Now();
    if (turn.begun) painter.Begin(*turn.begun, now);
    if (!turn.said.empty()) {
      Draw(painter.Erase());
      WriteOnce(options_.fd, turn.said);
    }
    if (turn.ending) break;
    if (turn.progress) Draw(painter.Paint(*turn.progress, now, ScreenSizeOf(options_.fd).columns));
  }
  Draw(painter.Erase());
  int shown = options_.fd;
  bar_fd.compare_exchange_strong(shown, kNoBar);
}

}  // namespace ecpipe
