// SPDX-License-Identifier: Apache-2.0
// What people see of long work: the rate, the time left, and one line with all of it. Pure: time
// and the terminal's width are handed in. progress.h brings it to the terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"

namespace ecpipe {

// A speed that somebody else has measured, such as the coordinator.
struct KnownSpeed {
  double per_second = 0;
  std::optional<double> seconds_left;
};

// How far work has come.
struct Progress {
  struct Blocks {
    uint64_t done = 0;
    uint64_t total = 0;
  };

  uint64_t done = 0;
  uint64_t total = 0;            // 0: not known
  std::optional<Blocks> blocks;  // shown in place of `done` and `total`; rates are of these still
  std::optional<KnownSpeed> speed;
};

// The rate over the last seconds. A stall brings it down to 0 within kWindow, an old one is
// forgotten after the same time.
class RateMeter {
 public:
  static constexpr Duration kWindow = std::chrono::seconds(10);
  // A shorter time says too little.
  static constexpr Duration kLeast = std::chrono::seconds(1);

  // To be called a few times a second. The first call, and one with less done than before, only
  // begin the measurement.
  void Add(TimePoint now, uint64_t done);
  // Of the samples so far; none before they cover kLeast.
  std::optional<double> PerSecond() const;

 private:
  struct Sample {
    TimePoint time;
    uint64_t done = 0;
  };
  std::deque<Sample> samples_;  // those that the window needs
};

// One moment of some work.
struct ProgressView {
  std::string label;  // what it is about, e.g. a block id
  std::string unit;   // "stripes"; empty: bytes
  Progress progress;
  std::optional<double> per_second;    // in the unit of progress.done
  std::optional<double> seconds_left;  // none: not known
  double elapsed_seconds = 0;
};

// Fills in what is derived from the progress: rate and time left.
ProgressView ViewOf(const std::string& label, const std::string& unit, const Progress& progress,
                    std::optional<double> measured_per_second, double elapsed_seconds);

// "0:07", "12:34", "3:02:10", "4 d 7 h", "over 999 d"; "-:--" when it is not known.
std::string DurationText(std::optional<double> seconds);

// A line for a terminal that is `columns` wide, such as
//   photo [########        ]  45 %  350.2 of 768 MiB  150 MiB/s  0:03 left
// It leaves some columns free, so that it never goes on in a second line. Where the room does not
// do, the amount goes first, then the rate, the bar, and the time left; a long label is cut.
std::string BarLine(const ProgressView& view, size_t columns);

// A line for a log: "photo: 45 %, 350.2 of 768 MiB, 150 MiB/s, 0:03 left".
std::string LogLine(const ProgressView& view);

}  // namespace ecpipe
