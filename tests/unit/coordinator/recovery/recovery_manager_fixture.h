// SPDX-License-Identifier: Apache-2.0
// Recoveries over helpers that live in memory: the test plays their reports.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "coordinator/recovery/recovery_manager.h"
#include "unit/coordinator/fakes.h"

namespace ecpipe {

// Nodes n0 to n8 and spare; 18 stripes, of which n0 has a block each.
class RecoveryManagerTest : public testing::Test {
 protected:
  void SetUp() override { Start(); }

  void Start() {
    manager_.reset();
    repairs_.reset();
    news_ = std::make_unique<HostedNews>();
    RepairCoordinator::Options options;
    options.dead_after = std::chrono::hours(1);
    options.max_running = max_running_;
    repairs_ = std::make_unique<RepairCoordinator>(&catalog_, &journal_, &helpers_,
                                                   &Clock::System(), options, news_.get());
    for (int i = 1; i < 9; ++i) Register("n" + std::to_string(i));
    Register("spare");
    RecoveryManager::Options recovery;
    recovery.queue.first_pause = std::chrono::milliseconds(1);
    recovery.queue.longest_pause = std::chrono::milliseconds(50);
    recovery.queue.max_attempts = 3;
    recovery.streams_per_node = 4;
    recovery.delay = delay_;
    recovery.gather = gather_;
    recovery.question_pause = question_pause_;
    manager_ = std::make_unique<RecoveryManager>(&catalog_, &journal_, repairs_.get(), &helpers_,
                                                 news_.get(), &Clock::System(), recovery);
    ASSERT_TRUE(manager_->Open(*journal_.ClaimInterrupted(0)).ok());
  }
  void Register(const std::string& node) { ASSERT_TRUE(repairs_->Register(FakeNode(node)).ok()); }
  static RecoveryRequest Request(std::vector<std::string> to = {}) {
    RecoveryRequest request;
    request.node = "n0";
    request.hosts = std::move(to);
    request.scheme = "rp";
    return request;
  }
  RecoveryId Begin(const RecoveryRequest& request) {
    const absl::StatusOr<RecoveryId> id = manager_->Begin(request, IfLive::kRefuse);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  RecoveryView View(RecoveryId id) { return manager_->Get(id).value(); }

  // All that nobody refused.
  std::vector<std::vector<HelperGateway::Handout>> AllHandouts() {
    MutexLock lock(&helpers_.mutex);
    return helpers_.all;
  }
  // The parts of hosts that nobody has answered for yet.
  std::vector<std::pair<std::string, RepairPart>> NewHosts() {
    MutexLock lock(&helpers_.mutex);
    std::vector<std::pair<std::string, RepairPart>> hosts;
    for (; answered_ < helpers_.all.size(); ++answered_) {
      for (const auto& handout : helpers_.all[answered_]) {
        if (!handout.part.stores.empty()) hosts.emplace_back(handout.helper.node, handout.part);
      }
    }
    return hosts;
  }
  std::vector<std::pair<std::string, RepairPart>> WaitForNewHosts(size_t count) {
    std::vector<std::pair<std::string, RepairPart>> hosts;
    WaitFor([&] {
      for (auto& host : NewHosts()) hosts.push_back(std::move(host));
      return hosts.size() >= count;
    });
    return hosts;
  }
  // Plays hosts that succeed, until `done`.
  bool AnswerUntil(const std::function<bool()>& done,
                   const absl::Status& answer = absl::OkStatus()) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      if (std::chrono::steady_clock::now() > give_up) return false;
      for (const auto& [node, part] : NewHosts()) {
        repairs_->ReportPart(node, part.repair_id, part.attempt, answer);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep-ok: a thread's progress
    }
    return true;
  }
  bool RunToEnd(RecoveryId id, const absl::Status& answer = absl::OkStatus()) {
    return AnswerUntil([&] { return View(id).record.ended_unix_ms != 0; }, answer);
  }
  bool WaitFor(const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {  // once is enough: it may hold for a moment only
      if (std::chrono::steady_clock::now() > give_up) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep-ok: a thread's progress
    }
    return true;
  }
  uint64_t BlocksOf(const std::string& node) {
    MutexLock lock(&catalog_.mutex);
    uint64_t count = 0;
    for (const auto& [stripe_id, stripe] : catalog_.stripes) {
      for (const BlockPlace& place : stripe.blocks) count += place.node == node ? 1 : 0;
    }
    return count;
  }

  Duration delay_{0};
  Duration gather_{0};
  Duration question_pause_ = std::chrono::seconds(1);
  uint32_t max_running_ = 10'000;
  MemoryCatalog catalog_{18, 9};
  MemoryJournal journal_;
  FakeHelpers helpers_;
  size_t answered_ = 0;
  std::unique_ptr<HostedNews> news_;
  std::unique_ptr<RepairCoordinator> repairs_;
  std::unique_ptr<RecoveryManager> manager_;
};

}  // namespace ecpipe
