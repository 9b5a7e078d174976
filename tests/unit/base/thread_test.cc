// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "base/fault_points.h"
#include "base/side_by_side.h"

namespace ecpipe::thread_test {
namespace {

class ThreadTest : public ::testing::Test {
 protected:
  ~ThreadTest() override { DisarmAllFaults(); }
};

TEST_F(ThreadTest, WithoutAThreadStartSaysSo) {
  ArmFault("thread.start", {});
  const absl::Status status = Thread::Start([] {}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST_F(ThreadTest, WorkSideBySideIsDoneByAsManyThreadsAsThereAre) {
  for (const int threads : {0, 1, 3}) {
    ArmFault("thread.start", {.after_hits = threads});
    std::atomic<int> done = 0;
    SideBySide(100, 8, [&](size_t) { ++done; });
    EXPECT_EQ(done, 100) << threads;
  }
}

TEST_F(ThreadTest, WhatWorkSideBySideThrowsIsThrownWhenAllHasEnded) {
  std::atomic<int> running = 0;
  const auto work = [&](size_t i) {
    ++running;
    if (i % 3 == 1) {
      --running;
      throw std::bad_alloc();
    }
    --running;
  };
  EXPECT_THROW(SideBySide(100, 8, work), std::bad_alloc);
  EXPECT_EQ(running, 0);
}

}  // namespace
}  // namespace ecpipe::thread_test
