// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/progress_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/bytes/size_text.h"
#include "base/bytes/utf8_text.h"

namespace ecpipe {
namespace {

constexpr size_t kMostSamples = 64;
// Samples that are closer together are not kept: these many cover the window.
constexpr Duration kSampleInterval = RateMeter::kWindow / (kMostSamples - 2);

constexpr size_t kLeastLabel = 12;
constexpr size_t kLeastBar = 8;
constexpr size_t kMostBar = 30;
// Left free at the end of a line: "^C", which the terminal itself writes there, and the last
// column, where terminals begin a new line.
constexpr size_t kMargin = 3;

// At most so many columns. A character may be two of them wide; which ones are, only the terminal
// knows, so that all but ASCII count as two.
size_t Columns(const std::string& text) {
  size_t columns = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    columns += byte < 0x80 ? 1 : byte >= 0xc0 ? 2 : 0;
  }
  return columns;
}

std::string CutToColumns(const std::string& text, size_t most) {
  std::string cut = text;
  while (Columns(cut) > most) cut = std::string(CutText(cut, cut.size() - 1));
  return cut;
}

// A label whose end is missing says so.
std::string CutLabel(const std::string& label, size_t most) {
  constexpr const char* kMark = "..";
  if (Columns(label) <= most) return label;
  return most <= 2 ? CutToColumns(label, most) : CutToColumns(label, most - 2) + kMark;
}

bool IsComplete(const Progress& progress) {
  return progress.total > 0 && progress.done >= progress.total;
}

// Rounded down: 100 only at the end.
int Percent(const Progress& progress) {
  if (IsComplete(progress)) return 100;
  const double share = static_cast<double>(progress.done) / static_cast<double>(progress.total);
  return std::min(static_cast<int>(share * 100), 99);
}

std::string Counted(uint64_t count, const std::string& unit) {
  return unit.empty() ? FormatSize(count) : std::to_string(count) + " " + unit;
}

// "350.2 of 768 MiB", "12 of 100 stripes". Both numbers have the unit of the second one.
std::string Ratio(uint64_t done, uint64_t total, const std::string& unit) {
  const std::string total_text = Counted(total, unit);
  const absl::StatusOr<uint64_t> factor =
      ParseSize("1" + total_text.substr(total_text.find(' ') + 1));
  // Of plain bytes and of stripes it is no size.
  if (!unit.empty() || !factor.ok()) return std::to_string(done) + " of " + total_text;
  char done_text[32];
  std::snprintf(done_text, sizeof done_text, "%.1f",
                static_cast<double>(done) / static_cast<double>(*factor));
  return std::string(done_text) + " of " + total_text;
}

std::string AmountText(const ProgressView& view) {
  const Progress& progress = view.progress;
  const uint64_t done = progress.blocks ? progress.blocks->done : progress.done;
  const uint64_t total = progress.blocks ? progress.blocks->total : progress.total;
  const std::string unit = progress.blocks ? "blocks" : view.unit;
  return progress.total == 0 ? Counted(done, unit) : Ratio(done, total, unit);
}

std::string RateText(const ProgressView& view) {
  if (!view.per_second) return view.unit.empty() ? "- B/s" : "-/s";
  const double rate = std::max(*view.per_second, 0.0);
  if (view.unit.empty()) return FormatSize(static_cast<uint64_t>(rate)) + "/s";
  char text[32];
  std::snprintf(text, sizeof text, rate > 0 && rate < 10 ? "%.1f" : "%.0f", rate);
  return std::string(text) + "/s";  // of what, the amount says
}

std::string TimeText(const ProgressView& view) {
  if (view.progress.total == 0) return DurationText(view.elapsed_seconds) + " so far";
  if (IsComplete(view.progress)) return "finishing";
  return DurationText(view.seconds_left) + " left";
}

// The texts of a line on a terminal, each without the space before it. An empty one is left out.
struct Pieces {
  std::string percent;
  std::string amount;
  std::string rate;
  std::string time;
  bool bar = false;
  size_t usual_rate_columns = 0;
  // What they take at most while the numbers change, so that the bar does not jump about.
  size_t reserved_columns = 0;
};

Pieces AllPieces(const ProgressView& view) {
  Pieces pieces{"", AmountText(view), RateText(view), TimeText(view), false, 0, 0};
  pieces.usual_rate_columns = view.unit.empty() ? 11 : 7;
  if (view.progress.total == 0) return pieces;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3d %%", Percent(view.progress));
  pieces.percent = percent;
  pieces.bar = true;
  return pieces;
}

// Columns of the pieces with the spaces before them, but for label and bar.
size_t ReservedColumns(const Pieces& pieces) {
  const auto reserve = [](const std::string& text, size_t usual) {
    return text.empty() ? 0 : 2 + std::max(Columns(text), usual);
  };
  const size_t amount =
      pieces.amount.size() - std::min(pieces.amount.find(" of "), pieces.amount.size());
  return reserve(pieces.amount, 6 + amount) + reserve(pieces.rate, pieces.usual_rate_columns) +
         reserve(pieces.time, 10) + (pieces.percent.empty() ? 0 : 1 + pieces.percent.size());
}

// Leaves pieces out until the others fit beside a label of `label` columns.
Pieces PiecesThatFit(const ProgressView& view, size_t label, size_t limit) {
  Pieces pieces = AllPieces(view);
  const auto fits = [&] {
    pieces.reserved_columns = ReservedColumns(pieces);
    return label + (pieces.bar ? kLeastBar + 3 : 0) + pieces.reserved_columns <= limit;
  };
  if (fits()) return pieces;
  if (!pieces.percent.empty()) {  // otherwise the amount is all there is to say
    pieces.amount.clear();
    if (fits()) return pieces;
  }
  pieces.rate.clear();
  if (fits()) return pieces;
  pieces.bar = false;
  if (fits()) return pieces;
  pieces.time.clear();
  fits();
  return pieces;
}

std::string BarText(const Progress& progress, size_t width) {
  const double share =
      std::min(static_cast<double>(progress.done) / static_cast<double>(progress.total), 1.0);
  const auto filled = static_cast<size_t>(share * static_cast<double>(width));
  return " [" + std::string(filled, '#') + std::string(width - filled, ' ') + "]";
}

}  // namespace

void RateMeter::Add(TimePoint now, uint64_t done) {
  if (!samples_.empty() && done < samples_.back().done) samples_.clear();
  // The newest one is replaced while it is too close to the one before it.
  const size_t count = samples_.size();
  if (count > 1 && now - samples_[count - 2].time < kSampleInterval) samples_.pop_back();
  samples_.push_back({now, done});
  // One sample from before the window stays, so that all of the window is covered.
  while (samples_.size() > 2 && now - samples_[1].time >= kWindow) samples_.pop_front();
}

std::optional<double> RateMeter::PerSecond() const {
  if (samples_.empty()) return std::nullopt;
  const Duration covered = samples_.back().time - samples_.front().time;
  if (covered < kLeast) return std::nullopt;
  return static_cast<double>(samples_.back().done - samples_.front().done) / Seconds(covered);
}

ProgressView ViewOf(const std::string& label, const std::string& unit, const Progress& progress,
                    std::optional<double> measured_per_second, double elapsed_seconds) {
  ProgressView view{CleanText(label),    unit,         progress,
                    measured_per_second, std::nullopt, elapsed_seconds};
  if (progress.speed) {
    view.per_second = progress.speed->per_second;
    view.seconds_left = progress.speed->seconds_left;
  } else if (progress.total > progress.done && view.per_second && *view.per_second > 0) {
    view.seconds_left = static_cast<double>(progress.total - progress.done) / *view.per_second;
  }
  return view;
}

std::string DurationText(std::optional<double> seconds) {
  if (!seconds || !std::isfinite(*seconds) || *seconds < 0) return "-:--";
  constexpr double kMost = 999.0 * 86400;
  if (*seconds > kMost) return "over 999 d";
  const auto whole = static_cast<unsigned>(std::ceil(*seconds));
  const unsigned hours = whole / 3600;
  char text[32];
  if (hours >= 100) {
    std::snprintf(text, sizeof text, "%u d %u h", hours / 24, hours % 24);
  } else if (hours > 0) {
    std::snprintf(text, sizeof text, "%u:%02u:%02u", hours, whole / 60 % 60, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%u:%02u", whole / 60, whole % 60);
  }
  return text;
}

std::string BarLine(const ProgressView& view, size_t columns) {
  const size_t limit = columns - std::min(columns, kMargin);
  const size_t wanted = Columns(view.label);
  const size_t least_label = std::min(wanted, kLeastLabel);
  const Pieces pieces = PiecesThatFit(view, least_label, limit);
  const size_t taken = pieces.reserved_columns + (pieces.bar ? kLeastBar + 3 : 0);
  const size_t label = std::min(wanted, std::max(least_label, limit - std::min(taken, limit)));
  std::string line = CutLabel(view.label, label);
  if (pieces.bar) {
    const size_t spare = limit - std::min(limit, taken + Columns(line));
    line += BarText(view.progress, std::min(kLeastBar + spare, kMostBar));
  }
  if (!pieces.percent.empty()) line += " " + pieces.percent;
  for (const std::string& text : {pieces.amount, pieces.rate, pieces.time}) {
    if (!text.empty()) line += "  " + text;
  }
  return CutToColumns(line, limit);
}

std::string LogLine(const ProgressView& view) {
  std::string line = view.label + ": ";
  if (view.progress.total > 0) line += std::to_string(Percent(view.progress)) + " %, ";
  line += AmountText(view);
  for (const std::string& text : {RateText(view), TimeText(view)}) {
    if (!text.empty()) line += ", " + text;
  }
  return line;
}

}  // namespace ecpipe
