// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slice_runs.h"

#include <algorithm>

namespace ecpipe {
namespace {

uint32_t EndOf(const SliceRun& run) { return run.first + run.count; }

std::vector<SliceRun> Bounded(std::vector<SliceRun> runs) {
  if (runs.size() <= kMaxMissingRuns) return runs;
  return {{runs.front().first, EndOf(runs.back()) - runs.front().first, 1}};
}

}  // namespace

std::vector<SliceRun> MissingRuns(std::span<const uint8_t> rows_left) {
  std::vector<SliceRun> runs;
  for (uint32_t i = 0; i < rows_left.size(); ++i) {
    if (rows_left[i] == 0) continue;
    if (!runs.empty() && EndOf(runs.back()) == i) {
      ++runs.back().count;
    } else {
      runs.push_back({i, 1, 1});
    }
  }
  return Bounded(std::move(runs));
}

std::vector<SliceRun> JoinRuns(const std::vector<SliceRun>& a, const std::vector<SliceRun>& b) {
  std::vector<SliceRun> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end(),
            [](const SliceRun& x, const SliceRun& y) { return x.first < y.first; });
  std::vector<SliceRun> joined;
  for (const SliceRun& run : all) {
    if (joined.empty() || run.first > EndOf(joined.back())) {
      joined.push_back(run);
    } else {
      SliceRun& last = joined.back();
      last.count = std::max(EndOf(last), EndOf(run)) - last.first;
    }
  }
  return Bounded(std::move(joined));
}

}  // namespace ecpipe
