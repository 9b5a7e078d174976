// SPDX-License-Identifier: Apache-2.0
#include "pipeline/read_thread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace ecpipe::read_thread_test {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

// What several jobs have read, and by which threads.
struct Reads {
  std::mutex mutex;
  std::vector<uint32_t> slices;
  std::set<std::thread::id> threads;
  size_t wanted = 0;
  std::promise<void> all;
};

class Slices : public ReadThread::Job {
 public:
  Slices(std::vector<uint32_t> slices, Reads* reads) : slices_(std::move(slices)), reads_(reads) {}

  std::optional<uint32_t> Next() override {
    const std::lock_guard lock(reads_->mutex);
    if (next_ == slices_.size()) return std::nullopt;
    return slices_[next_];
  }
  void Read() override {
    const std::lock_guard lock(reads_->mutex);
    reads_->slices.push_back(slices_[next_++]);
    reads_->threads.insert(std::this_thread::get_id());
    if (reads_->slices.size() == reads_->wanted) reads_->all.set_value();
  }

 private:
  const std::vector<uint32_t> slices_;
  size_t next_ = 0;
  Reads* const reads_;
};

// Reads nothing and hangs until it is told.
class Gate : public ReadThread::Job {
 public:
  explicit Gate(std::shared_future<void> open) : open_(std::move(open)) {}
  std::optional<uint32_t> Next() override {
    return passed_ ? std::nullopt : std::optional<uint32_t>(0);
  }
  void Read() override {
    entered.set_value();
    open_.wait();
    passed_ = true;
  }

  std::promise<void> entered;

 private:
  const std::shared_future<void> open_;
  std::atomic<bool> passed_ = false;
};

TEST(ReadThread, OneThreadReadsTheLowestSliceOfAll) {
  Reads reads;
  reads.wanted = 40 * 10;
  std::promise<void> open;
  ReadThread thread;
  const auto gate = std::make_shared<Gate>(open.get_future().share());
  ASSERT_TRUE(thread.Add(gate).ok());
  gate->entered.get_future().wait();
  for (uint32_t lane = 0; lane < 40; ++lane) {
    std::vector<uint32_t> slices;
    for (uint32_t i = 0; i < 10; ++i) slices.push_back(i * 40 + lane);
    ASSERT_TRUE(thread.Add(std::make_shared<Slices>(std::move(slices), &reads)).ok());
  }
  open.set_value();
  ASSERT_EQ(reads.all.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(reads.threads.size(), 1u);
  EXPECT_TRUE(std::is_sorted(reads.slices.begin(), reads.slices.end()));
}

TEST(ReadThread, ReadsNothingOfARemovedJob) {
  Reads reads;
  reads.wanted = 1;
  std::promise<void> open;
  ReadThread thread;
  const auto gate = std::make_shared<Gate>(open.get_future().share());
  ASSERT_TRUE(thread.Add(gate).ok());
  gate->entered.get_future().wait();
  const auto removed = std::make_shared<Slices>(std::vector<uint32_t>{1, 2}, &reads);
  ASSERT_TRUE(thread.Add(removed).ok());
  ASSERT_TRUE(thread.Add(std::make_shared<Slices>(std::vector<uint32_t>{3}, &reads)).ok());
  thread.Remove(removed.get());
  open.set_value();
  ASSERT_EQ(reads.all.get_future().wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(reads.slices, std::vector<uint32_t>{3});
}

}  // namespace
}  // namespace ecpipe::read_thread_test
