// SPDX-License-Identifier: Apache-2.0
// How often a requestor goes on after an attempt that failed.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "unit/requestor/client/requestor_fixture.h"

namespace ecpipe::requestor_attempts_test {
namespace {

using namespace requestor_fixture;

using RequestorAttempts = RequestorFixture;

TEST_F(RequestorAttempts, GivesUpWhenAttemptsInARowBringNothing) {
  int resumed = 0;
  coordinator_->resume = [&](const ResumePoint& failed) {
    ++resumed;
    RepairGrant granted = Granted(0);
    granted.part.attempt = failed.attempt + 1;
    return granted;
  };
  absl::Status told;
  coordinator_->finish = [&](const RepairVerdict& verdict, const std::stop_token&) {
    told = verdict.status;
    return absl::OkStatus();
  };
  helpers_->refused = 1000;
  const absl::Status status = Read();
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_TRUE(absl::IsAborted(told)) << told;
  EXPECT_EQ(resumed, 15);
  const std::string text(status.message());
  EXPECT_NE(text.find("after 16 attempts in a row"), std::string::npos) << text;
  EXPECT_NE(text.find("nobody listens"), std::string::npos) << text;
}

// Of forty slices each connection brings one, and every second attempt none.
TEST_F(RequestorAttempts, GoesOnWhileAttemptsBringSomething) {
  constexpr uint32_t kSlices = 40;
  RepairGrant granted = Granted(0);
  granted.block_lengths = {kSlices * kSliceBytes};
  granted.part.grid.bytes = kSlices * kSliceBytes;
  granted.part.hops[0].slices = LaneSlices::All(kSlices);
  coordinator_->begin = [&](const RepairTarget&) { return granted; };
  coordinator_->resume = [&](const ResumePoint& failed) -> absl::StatusOr<RepairGrant> {
    if (failed.attempt > 3 * kSlices) return absl::OutOfRangeError("it does not end");
    granted.part.attempt = failed.attempt + 1;
    helpers_->refused = static_cast<int>(failed.attempt % 2);
    granted.part.hops[0].slices = LaneSlices::Create(failed.left.missing, kSlices).value();
    return granted;
  };
  helpers_->frames = 1;
  uint64_t bytes = 0;
  const auto take = [&](std::span<const uint8_t> piece) {
    bytes += piece.size();
    return absl::OkStatus();
  };
  const auto report = requestor().Read({.block_ids = {"b"}}, take);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(bytes, kSlices * kSliceBytes);
  EXPECT_GT(report->attempts, kSlices);
}

}  // namespace
}  // namespace ecpipe::requestor_attempts_test
