// SPDX-License-Identifier: Apache-2.0
// Shows people how far long work has come: a bar on a terminal, now and then a line elsewhere.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/progress_fn.h"
#include "base/thread.h"
#include "requestor/cli/progress_text.h"

namespace ecpipe {

enum class ProgressStyle {
  kNone,
  kBar,    // one line that is rewritten in place
  kLines,  // for logs
};

// kBar for a terminal that can erase a line, kLines otherwise.
ProgressStyle StyleFor(int fd);

struct ProgressOptions {
  std::string label;  // what it is about, e.g. a block id
  std::string unit;   // of `done` and `total`, e.g. "stripes"; empty: bytes
  int fd = 2;         // standard error
  ProgressStyle style = StyleFor(fd);
  // Nothing is shown of work that is over before the first of these.
  Duration first_frame = std::chrono::milliseconds(500);
  Duration frame_interval = std::chrono::milliseconds(200);
  Duration line_interval = std::chrono::seconds(10);
};

// Decides what is to be written, and when. Pure: it is told the time.
class ProgressPainter {
 public:
  ProgressPainter(const ProgressOptions& options, TimePoint begun);

  // What follows is another piece of work, which begins now.
  void Begin(const std::string& label, TimePoint now);
  // What is to be written now, if anything. `columns` is the terminal's width. To be called every
  // frame_interval, since it also measures the rate.
  std::string Paint(const Progress& progress, TimePoint now, size_t columns);
  // Takes the bar away, if there is one.
  std::string Erase();

 private:
  std::string label_;
  const std::string unit_;
  const ProgressStyle style_;
  const Duration line_interval_;
  const TimePoint first_frame_;
  TimePoint begun_;  // the present piece of work
  TimePoint next_line_;
  RateMeter meter_;
  bool drawn_ = false;
};

// Shows progress from a thread of its own: a stall shows as one, and work that tells of itself
// never waits for the terminal. At most one per process has a bar. All methods from any thread.
//
// SIGINT and SIGTERM erase the bar before they end the process, unless the process handles or
// blocks them; it calls EraseForExit then. A process in the background draws nothing.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(ProgressOptions options);
  // Erases the bar.
  ~ProgressDisplay();
  ProgressDisplay(const ProgressDisplay&) = delete;
  ProgressDisplay& operator=(const ProgressDisplay&) = delete;

  void Show(const Progress& progress);
  // Show() as a function. The display outlives it.
  ProgressFn Callback();
  // The next piece of work begins; its `done` starts at 0.
  void Begin(const std::string& label);
  // Writes a line that stays, but for kNone.
  void Say(const std::string& line);

  // Erases the bar of this process, if there is one. Safe in a signal handler.
  static void EraseForExit();

 private:
  // What the thread has to do.
  struct Turn {
    bool ending = false;
    std::string said;
    std::optional<std::string> begun;  // the label of the work that has begun
    std::optional<Progress> progress;  // none: nothing is known yet
  };
  class SignalHandlers;

  void Run();
  // Returns at the latest at the deadline.
  Turn Await(TimePoint deadline);
  void Draw(const std::string& frame) const;

  const ProgressOptions options_;
  Mutex mutex_;
  CondVar changed_;
  Turn turn_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SignalHandlers> signal_handlers_;
  Thread thread_;
};

}  // namespace ecpipe
