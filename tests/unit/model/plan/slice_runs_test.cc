// SPDX-License-Identifier: Apache-2.0
#include "model/plan/slice_runs.h"

#include <gtest/gtest.h>

namespace ecpipe::slice_runs_test {
namespace {

using Runs = std::vector<SliceRun>;

TEST(SliceRuns, NeighboursThatAreMissingAreOneRun) {
  EXPECT_EQ(MissingRuns(std::vector<uint8_t>{}), Runs{});
  EXPECT_EQ(MissingRuns(std::vector<uint8_t>{0, 0}), Runs{});
  EXPECT_EQ(MissingRuns(std::vector<uint8_t>{2, 1, 0, 0, 4}), (Runs{{0, 2, 1}, {4, 1, 1}}));
}

TEST(SliceRuns, TooManyRunsAreNamedAsOne) {
  std::vector<uint8_t> rows_left(2 * kMaxMissingRuns + 10);
  for (size_t i = 0; i < kMaxMissingRuns; ++i) rows_left[2 * i + 1] = 1;
  EXPECT_EQ(MissingRuns(rows_left).size(), kMaxMissingRuns);
  rows_left[2 * kMaxMissingRuns + 1] = 1;
  EXPECT_EQ(MissingRuns(rows_left), (Runs{{1, 2 * kMaxMissingRuns + 1, 1}}));
}

TEST(SliceRuns, JoinedRunsHaveAllSlicesOfBothOnce) {
  EXPECT_EQ(JoinRuns({}, {}), Runs{});
  EXPECT_EQ(JoinRuns({{3, 2, 1}}, {}), (Runs{{3, 2, 1}}));
  EXPECT_EQ(JoinRuns({{3, 2, 1}, {9, 1, 1}}, {{0, 1, 1}, {4, 3, 1}}),
            (Runs{{0, 1, 1}, {3, 4, 1}, {9, 1, 1}}));
  EXPECT_EQ(JoinRuns({{3, 2, 1}}, {{5, 2, 1}}), (Runs{{3, 4, 1}})) << "they touch";
  EXPECT_EQ(JoinRuns({{0, 9, 1}}, {{2, 3, 1}}), (Runs{{0, 9, 1}})) << "one is within the other";
}

}  // namespace
}  // namespace ecpipe::slice_runs_test
