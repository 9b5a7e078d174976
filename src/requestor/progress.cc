// SPDX-License-Identifier: Apache-2.0
#include "requestor/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "common/size_text.h"

namespace ecpipe {
namespace {

constexpr auto kLineInterval = std::chrono::seconds(1);

}  // namespace

ProgressDisplay::ProgressDisplay(std::string label)
    : label_(std::move(label)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begun_(Clock::System().Now()),
      next_line_(begun_ + kLineInterval) {}

ProgressDisplay::~ProgressDisplay() {
  if (drawn_) std::fprintf(stderr, "\r\033[K");
}

ProgressFn ProgressDisplay::Callback() {
  return
      [this](uint64_t verified_bytes, uint64_t total_bytes) { Show(verified_bytes, total_bytes); };
}

void ProgressDisplay::Show(uint64_t verified_bytes, uint64_t total_bytes) {
  const TimePoint now = Clock::System().Now();
  const double seconds = std::max(Seconds(now - begun_), 1e-3);
  const double rate = static_cast<double>(verified_bytes) / seconds;
  const double rest = rate > 0 ? static_cast<double>(total_bytes - verified_bytes) / rate : 0;
  const int percent = static_cast<int>(verified_bytes * 100 / std::max<uint64_t>(total_bytes, 1));
  const std::string amount = FormatSize(verified_bytes) + " of " + FormatSize(total_bytes);
  const std::string speed = FormatSize(static_cast<uint64_t>(rate)) + "/s";
  if (terminal_) {
    constexpr int kWidth = 30;
    const std::string bar(static_cast<size_t>(percent * kWidth / 100), '#');
    std::fprintf(stderr, "\r\033[K%s [%-*s] %3d %%  %s  %s  %.0f s left", label_.c_str(), kWidth,
                 bar.c_str(), percent, amount.c_str(), speed.c_str(), rest);
    drawn_ = true;
  } else if (now >= next_line_) {
    next_line_ = now + kLineInterval;
    std::fprintf(stderr, "%s: %d %%, %s, %s\n", label_.c_str(), percent, amount.c_str(),
                 speed.c_str());
  }
}

}  // namespace ecpipe
