// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/watch_command.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/unique_fd.h"
#include "base/wakeup.h"
#include "requestor/cli/terminal.h"
#include "requestor/upkeep/cluster_json.h"
#include "requestor/upkeep/watch_screen.h"

namespace ecpipe {
namespace {

// For the use of links in the first frame.
constexpr Duration kFirstInterval = std::chrono::milliseconds(500);

constexpr std::array kEnds = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t WatchedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int end : kEnds) sigaddset(&signals, end);
  sigaddset(&signals, SIGWINCH);
  sigaddset(&signals, SIGTSTP);
  return signals;
}

std::string TimeOfDay(int64_t unix_ms) {
  const time_t seconds = unix_ms / 1000;
  struct tm local{};
  char text[32] = "";
  if (::localtime_r(&seconds, &local) != nullptr) ::strftime(text, sizeof text, "%T", &local);
  return text;
}

// Asks the coordinator, again and again.
class Watcher {
 public:
  Watcher(std::unique_ptr<CoordinatorApi> coordinator, const std::string& address)
      : coordinator_(std::move(coordinator)) {
    frame_.coordinator = address;
    frame_.error = "no answer yet";
    Stamp();
  }

  const WatchFrame& frame() const { return frame_; }
  // The next frame. After an error it is the one before, and says why.
  const WatchFrame& Next() {
    const absl::Status status = Fetch();
    frame_.error = status.ok() ? "" : StatusText(status);
    Stamp();
    return frame_;
  }

 private:
  void Stamp() {
    frame_.now_unix_ms = Clock::System().UnixMillis();
    frame_.time = TimeOfDay(frame_.now_unix_ms);
  }
  absl::Status Fetch() {
    ECPIPE_ASSIGN_OR_RETURN(ClusterStatus status, coordinator_->Status());
    const TimePoint now = Clock::System().Now();
    if (asked_) {
      frame_.uses = LinkUsesBetween(frame_.status.nodes, status.nodes, Seconds(now - *asked_));
    }
    asked_ = now;
    frame_.answered = true;
    frame_.status = std::move(status);
    ECPIPE_ASSIGN_OR_RETURN(frame_.recoveries, coordinator_->Recoveries(0));
    return absl::OkStatus();
  }

  std::unique_ptr<CoordinatorApi> coordinator_;
  WatchFrame frame_;
  std::optional<TimePoint> asked_;  // nothing: no answer yet
};

// Watches on a thread of its own: a coordinator that does not answer holds up no signal.
class WatchThread {
 public:
  WatchThread(Watcher watcher, const WatchArguments& arguments)
      : watcher_(std::move(watcher)),
        interval_(FromSeconds(arguments.interval_s)),
        frames_(arguments.frames),
        latest_(watcher_.frame()),
        thread_([this] { Run(); }) {}
  ~WatchThread() {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      stop_.NotifyAll();
    }
    thread_.join();
  }
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

  Wakeup& news() { return news_; }
  WatchFrame latest() {
    MutexLock lock(&mutex_);
    return latest_;
  }
  bool ended() {
    MutexLock lock(&mutex_);
    return ended_;
  }

 private:
  void Run() {
    // Only an error is shown at once: rates need a second look.
    if (!watcher_.Next().error.empty()) Show(0);
    bool more = Rest(kFirstInterval);
    for (uint64_t shown = 1; more; more = Rest(interval_)) {
      watcher_.Next();
      if (Show(shown++)) return;
    }
  }
  // As the so many-th. Returns whether it is the last one.
  bool Show(uint64_t number) {
    MutexLock lock(&mutex_);
    latest_ = watcher_.frame();
    ended_ = number > 0 && number == frames_;
    news_.Signal();
    return ended_;
  }
  // Returns whether to go on.
  bool Rest(Duration pause) {
    const TimePoint until = Clock::System().Now() + pause;
    MutexLock lock(&mutex_);
    while (!stopping_ && stop_.WaitUntil(lock, until)) {
    }
    return !stopping_;
  }

  Watcher watcher_;
  const Duration interval_;
  const uint64_t frames_;
  Wakeup news_;
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  WatchFrame latest_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;
};

// The terminal's alternate screen, which leaves what was there before as it was.
class AlternateScreen {
 public:
  AlternateScreen() { Write("\033[?1049h\033[?25l\033[2J"); }
  ~AlternateScreen() { Write("\033[?25h\033[?1049l"); }
  AlternateScreen(const AlternateScreen&) = delete;
  AlternateScreen& operator=(const AlternateScreen&) = delete;

  // Over the frame before, so that nothing flickers. No newline ends it: the screen would move.
  // Erased before it is written: behind a line as wide as the screen the cursor is on its last
  // character.
  static void Draw(const std::string& text, size_t rows) {
    std::string drawn = "\033[H";
    std::string between;
    for (const auto line : absl::StrSplit(text, '\n')) {
      if (rows-- == 0) break;
      drawn += std::exchange(between, "\r\n") + "\033[K" + std::string(line.data(), line.size());
    }
    Write(drawn + "\033[J");
  }

 private:
  static void Write(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
};

// Shows frames until the last one, or a signal. Returns the signal that asks to end or to stop; 0:
// the last frame was shown.
int ShowUntilSignal(WatchThread* watch, int signals, const SortOrder& order) {
  const AlternateScreen screen;
  while (true) {
    std::array<pollfd, 2> waits = {{{signals, POLLIN, 0}, {watch->news().fd(), POLLIN, 0}}};
    const ScreenSize size = ScreenSizeOf(STDOUT_FILENO);
    const bool ended = watch->ended();
    OutputStyle style = OutputStyleOf(STDOUT_FILENO);
    style.columns = std::min(style.columns, size.columns);  // COLUMNS may be more than there are
    std::string text = WatchScreen(watch->latest(), order, style, size.rows);
    text.pop_back();
    AlternateScreen::Draw(text, size.rows);
    if (ended) return 0;
    ::poll(waits.data(), waits.size(), -1);  // the watching thread ends it at each frame
    watch->news().Drain();
    signalfd_siginfo signal{};
    if ((waits[0].revents & POLLIN) == 0) continue;
    if (::read(signals, &signal, sizeof signal) != sizeof signal) continue;
    if (signal.ssi_signo != SIGWINCH) return static_cast<int>(signal.ssi_signo);
  }
}

// Does what the signal does to a process that does not handle it.
void Die(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::raise(signal);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

absl::Status WatchOnScreen(Watcher watcher, const WatchArguments& arguments) {
  const sigset_t watched = WatchedSignals();
  const UniqueFd signals(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return ErrnoStatus(errno, "signalfd");
  WatchThread watch(std::move(watcher), arguments);
  if (!watch.news().valid()) return absl::ResourceExhaustedError("too many open files");
  while (true) {
    const int signal = ShowUntilSignal(&watch, signals.get(), arguments.order);
    if (signal == 0) {
      const std::string error = watch.latest().error;
      return error.empty() ? absl::OkStatus() : absl::UnavailableError(error);
    }
    if (signal != SIGTSTP) Die(signal);
    ::raise(SIGSTOP);  // until the shell lets it go on
  }
}

// A frame a line, until the last one, or until nobody takes them.
absl::Status WatchAsJson(Watcher watcher, const WatchArguments& arguments) {
  watcher.Next();
  Duration pause = kFirstInterval;
  for (uint64_t frames = 1;; ++frames) {
    std::this_thread::sleep_for(pause);  // sleep-ok: signals end the process
    pause = FromSeconds(arguments.interval_s);
    const WatchFrame& frame = watcher.Next();
    const std::string line = WatchJson(frame, arguments.order).dump();
    if (std::printf("%s\n", line.c_str()) < 0 || std::fflush(stdout) != 0) {
      return ErrnoStatus(errno, "write to standard output");
    }
    if (frames != arguments.frames) continue;
    return frame.error.empty() ? absl::OkStatus() : absl::UnavailableError(frame.error);
  }
}

}  // namespace

absl::Status RunWatch(const CommonArguments& common, const WatchArguments& arguments) {
  const bool on_screen = !common.json && IsScreen(STDOUT_FILENO);
  // Before gRPC has threads, which inherit it.
  const sigset_t watched = WatchedSignals();
  if (on_screen) ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<CoordinatorApi> coordinator, ConnectCoordinator(common));
  Watcher watcher(std::move(coordinator), common.coordinator);
  if (common.json) return WatchAsJson(std::move(watcher), arguments);
  if (on_screen) return WatchOnScreen(std::move(watcher), arguments);
  watcher.Next();
  std::this_thread::sleep_for(kFirstInterval);  // sleep-ok: a rate needs two samples
  const WatchFrame& frame = watcher.Next();
  if (!frame.error.empty()) return absl::UnavailableError(frame.error);
  std::fputs(WatchScreen(frame, arguments.order, OutputStyleOf(STDOUT_FILENO), 0).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace ecpipe
