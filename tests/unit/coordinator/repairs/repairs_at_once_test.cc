// SPDX-License-Identifier: Apache-2.0
// Repairs that threads begin, resume and end at the same time.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "model/fault.h"
#include "unit/coordinator/fakes.h"

namespace ecpipe::repairs_at_once_test {
namespace {

class Ends : public RepairListener {
 public:
  void OnHostedEnd(const HostedEnd& end) override {
    MutexLock lock(&mutex);
    ends.push_back(end);
  }

  Mutex mutex;
  std::vector<HostedEnd> ends;
};

class RepairsAtOnce : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* node : {"n0", "n1", "n2", "n3", "n4", "n5", "spare"}) Register(node, 1);
  }
  void Register(const std::string& node, uint64_t incarnation) {
    NodeRecord record = FakeNode(node);
    record.incarnation = incarnation;
    ASSERT_TRUE(coordinator_.Register(record).ok());
  }
  absl::StatusOr<RepairGrant> Begin(const std::string& block_id, const std::string& host = "") {
    RepairRequest request = Request(block_id);
    if (!host.empty()) request.hosts = {host};
    return coordinator_.BeginRepair(request, host.empty() ? 0 : 7);
  }
  static RepairRequest Request(const std::string& block_id) {
    RepairRequest request;
    request.block_ids = {block_id};
    request.scheme = "rp";
    request.slice_bytes = 100;
    return request;
  }

  MemoryCatalog catalog_{2};
  MemoryJournal journal_;
  FakeHelpers helpers_;
  FakeClock clock_;
  Ends ends_;
  RepairCoordinator coordinator_{&catalog_, &journal_, &helpers_, &clock_, {}, &ends_};
};

TEST_F(RepairsAtOnce, AreEachAnsweredAndEndedOnce) {
  constexpr int kRounds = 300;
  std::atomic<RepairId> latest = 0;
  std::atomic<bool> done = false;
  uint64_t hosted = 0;
  Thread other([&] {
    for (int i = 0; !done; ++i) {
      const RepairId id = latest;
      coordinator_.Expire();
      if (i % 3 == 0) coordinator_.CancelHosted(7);
      if (i % 4 == 1) coordinator_.FinishRepair(id, {absl::CancelledError("enough"), 0});
      (void)coordinator_.CheckProgress(id, 0, 400, true);
      (void)coordinator_.StreamsOf("n1");
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    if (Begin("b6", "spare").ok()) ++hosted;
    const auto grant = Begin("b0");
    EXPECT_TRUE(grant.ok()) << grant.status();
    if (!grant.ok()) break;
    latest = grant->repair_id;
    const absl::Status lost = WithFault(absl::UnavailableError("lost"), "n1");
    const auto next = coordinator_.ResumeRepair(
        Request("b0"), {grant->repair_id, 0, {grant->part.grid, {{6, 4, 1}}}, "rp", lost});
    EXPECT_TRUE(next.ok() || absl::IsAborted(next.status()) || absl::IsCancelled(next.status()))
        << next.status();
    coordinator_.FinishRepair(grant->repair_id, {absl::OkStatus(), 1000});
  }
  done = true;
  other.join();
  coordinator_.CancelHosted(7);
  EXPECT_EQ(ends_.ends.size(), hosted);
  EXPECT_TRUE(coordinator_.RunningBlocks().empty());
  const RepairCounts counts = coordinator_.counts();
  EXPECT_EQ(counts.started, counts.done + counts.failed + counts.cancelled);
  for (const auto& [id, record] : journal_.records) {
    EXPECT_NE(record.state, RepairState::kRunning) << id;
  }
}

TEST_F(RepairsAtOnce, AHostThatHasJustStartedAgainIsNoFault) {
  constexpr uint64_t kStarts = 1000;
  std::atomic<uint64_t> calls = 0;
  std::atomic<bool> done = false;
  // One look beside each call: a thread that only looked would keep the lock from the others.
  Thread expiry([&] {
    for (uint64_t seen = 0; !done; calls.wait(seen)) {
      seen = calls;
      coordinator_.Expire();
    }
  });
  const auto call = [&calls] {
    ++calls;
    calls.notify_one();
  };
  for (uint64_t start = 2; start < kStarts && !HasFailure(); ++start) {
    call();
    Register("spare", start);
    call();
    const auto grant = Begin("b0", "spare");
    EXPECT_TRUE(grant.ok()) << grant.status();
    if (!grant.ok()) break;
    call();
    coordinator_.ReportPart("spare", grant->repair_id, grant->part.attempt, absl::OkStatus());
    MutexLock lock(&ends_.mutex);
    EXPECT_EQ(ends_.ends.size(), start - 1);
    EXPECT_TRUE(ends_.ends.back().status.ok()) << ends_.ends.back().status;
  }
  done = true;
  call();
  expiry.join();
}

}  // namespace
}  // namespace ecpipe::repairs_at_once_test
