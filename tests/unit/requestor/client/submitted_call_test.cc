// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/submitted_call.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>

namespace ecpipe::submitted_call_test {
namespace {

bool Ready(const SubmittedCall& call, int milliseconds = 0) {
  pollfd polled{call.descriptor(), POLLIN, 0};
  return ::poll(&polled, 1, milliseconds) == 1;
}

std::vector<uint8_t> Numbers(size_t count) {
  std::vector<uint8_t> bytes(count);
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

std::shared_ptr<SubmittedCall> CallOf(size_t buffer_bytes) {
  auto call = SubmittedCall::Create(buffer_bytes);
  EXPECT_TRUE(call.ok());
  return *call;
}

TEST(SubmittedCallTest, DescriptorSaysWhetherThereIsSomething) {
  const auto call = CallOf(10);
  std::vector<uint8_t> out(10);
  EXPECT_FALSE(Ready(*call));
  EXPECT_EQ(*call->Take(out), std::nullopt);
  ASSERT_TRUE(call->Put(Numbers(3)).ok());
  EXPECT_TRUE(Ready(*call));
  EXPECT_EQ(*call->Take(std::span(out).first(2)), 2u);
  EXPECT_TRUE(Ready(*call));
  EXPECT_EQ(*call->Take(out), 1u);
  EXPECT_FALSE(Ready(*call));
  EXPECT_FALSE(call->result().has_value());
  call->End(RepairReport{});
  EXPECT_TRUE(Ready(*call));
  EXPECT_EQ(*call->Take(out), 0u);
  EXPECT_TRUE(Ready(*call));
  EXPECT_TRUE(call->result()->ok());
}

TEST(SubmittedCallTest, BytesComeInOrderThroughASmallRing) {
  const auto call = CallOf(7);
  const std::vector<uint8_t> sent = Numbers(5000);
  CallThreads threads(1);
  ASSERT_TRUE(threads
                  .Start(call,
                         [&](SubmittedCall* own) -> absl::StatusOr<RepairReport> {
                           for (size_t at = 0; at < sent.size(); at += 50) {
                             const absl::Status put = own->Put(std::span(sent).subspan(at, 50));
                             if (!put.ok()) return put;
                           }
                           return RepairReport{};
                         })
                  .ok());
  std::vector<uint8_t> got;
  std::vector<uint8_t> out(5);
  while (true) {
    ASSERT_TRUE(Ready(*call, 10'000));
    const auto taken = call->Take(out);
    ASSERT_TRUE(taken.ok());
    if (*taken == std::nullopt) continue;
    if (**taken == 0) break;
    got.insert(got.end(), out.begin(), out.begin() + static_cast<ptrdiff_t>(**taken));
  }
  EXPECT_EQ(got, sent);
}

TEST(SubmittedCallTest, CancelEndsAPutThatWaits) {
  const auto call = CallOf(4);
  CallThreads threads(1);
  ASSERT_TRUE(threads
                  .Start(call,
                         [](SubmittedCall* own) -> absl::StatusOr<RepairReport> {
                           return own->Put(Numbers(100));
                         })
                  .ok());
  ASSERT_TRUE(Ready(*call, 10'000));
  call->Cancel();
  while (!call->result()) ASSERT_TRUE(Ready(*call, 10'000));
  EXPECT_EQ(call->result()->status().code(), absl::StatusCode::kCancelled);
  std::vector<uint8_t> out(4);
  EXPECT_EQ(call->Take(out).status().code(), absl::StatusCode::kCancelled);
}

TEST(CallThreadsTest, ExceptionsEndTheCall) {
  const auto call = CallOf(0);
  CallThreads threads(1);
  ASSERT_TRUE(threads
                  .Start(call,
                         [](SubmittedCall*) -> absl::StatusOr<RepairReport> {
                           throw std::runtime_error("a mistake");
                         })
                  .ok());
  ASSERT_TRUE(Ready(*call, 10'000));
  EXPECT_EQ(call->result()->status().code(), absl::StatusCode::kInternal);
}

TEST(CallThreadsTest, AreLimitedAndComeFreeAgain) {
  const auto wait_for_cancel = [](SubmittedCall* own) -> absl::StatusOr<RepairReport> {
    return own->Put(Numbers(2));
  };
  CallThreads threads(2);
  const auto first = CallOf(1);
  const auto second = CallOf(1);
  const auto third = CallOf(1);
  ASSERT_TRUE(threads.Start(first, wait_for_cancel).ok());
  ASSERT_TRUE(threads.Start(second, wait_for_cancel).ok());
  EXPECT_EQ(threads.Start(third, wait_for_cancel).code(), absl::StatusCode::kResourceExhausted);
  first->Cancel();
  while (!first->result()) ASSERT_TRUE(Ready(*first, 10'000));
  // Whoever has heard of the end may begin another call at once.
  EXPECT_TRUE(threads.Start(third, wait_for_cancel).ok());
}

TEST(CallThreadsTest, EndWithCallsUnderWay) {
  const auto call = CallOf(1);
  {
    CallThreads threads(3);
    ASSERT_TRUE(threads
                    .Start(call,
                           [](SubmittedCall* own) -> absl::StatusOr<RepairReport> {
                             return own->Put(Numbers(2));
                           })
                    .ok());
    // Nobody holds this one any more when it ends.
    ASSERT_TRUE(threads
                    .Start(CallOf(1),
                           [](SubmittedCall* own) -> absl::StatusOr<RepairReport> {
                             return own->Put(Numbers(2));
                           })
                    .ok());
  }
  EXPECT_EQ(call->result()->status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace ecpipe::submitted_call_test
