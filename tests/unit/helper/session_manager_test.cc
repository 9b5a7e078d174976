// SPDX-License-Identifier: Apache-2.0
// Sessions over a transport that never moves a byte: a part runs until something ends it.
#include "helper/session_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace ecpipe {
namespace {

using ::testing::HasSubstr;

// How many streams are open, over all that a transport made.
class IdleTransport : public Transport {
 public:
  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput&,
                                                         const StreamShape&) override {
    return absl::UnimplementedError("nobody receives here");
  }
  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput&, const StreamShape&,
                                                     std::shared_ptr<Wakeup>) override {
    if (refuse) return absl::AlreadyExistsError("the edge is expected already");
    return std::make_unique<Sender>(this);
  }

  std::atomic<int> open{0};
  std::atomic<bool> refuse{false};
  std::atomic<bool> flows{false};  // everything is taken at once

 private:
  class Sender : public SliceSender {
   public:
    explicit Sender(IdleTransport* owner) : owner_(owner) { ++owner_->open; }
    ~Sender() override { --owner_->open; }
    absl::StatusOr<bool> TrySend(const FrameHeader&, std::span<const uint8_t>, Next) override {
      return owner_->flows.load();
    }
    absl::StatusOr<bool> TryFinish() override { return owner_->flows.load(); }
    absl::Status CheckPeer() override { return absl::OkStatus(); }
    void SendError(const FrameHeader&, const absl::Status&) override {}
    pollfd poll_fd() const override { return {-1, 0, 0}; }
    uint64_t bytes_sent() const override { return 0; }
    LinkTiming timing() const override { return {}; }

   private:
    IdleTransport* const owner_;
  };
};

class ZeroBlock : public BlockReader {
 public:
  uint64_t bytes() const override { return 1000; }
  absl::Status ReadAt(uint64_t, std::span<uint8_t> out) override {
    std::fill(out.begin(), out.end(), uint8_t{0});
    return absl::OkStatus();
  }
};

class FakeStore : public BlockStore {
 public:
  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override {
    if (block_id != "block") return absl::NotFoundError("block " + block_id + " is not here");
    return std::make_unique<ZeroBlock>();
  }
  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t bytes) override {
    if (full) return absl::ResourceExhaustedError("no block root has room for " + block_id);
    return std::make_unique<Writer>(this, bytes);
  }
  absl::StatusOr<StoreInventory> TakeInventory() override { return StoreInventory{}; }

  bool full = false;
  std::atomic<bool> fail_commit{false};
  std::atomic<int> writers{0};  // that exist
  std::atomic<int> committed{0};

 private:
  class Writer : public BlockWriter {
   public:
    Writer(FakeStore* owner, uint64_t missing) : owner_(owner), missing_(missing) {
      ++owner_->writers;
    }
    ~Writer() override { --owner_->writers; }
    absl::Status WriteAt(uint64_t, std::span<const uint8_t> bytes) override {
      missing_ -= bytes.size();
      return absl::OkStatus();
    }
    absl::Status Commit() override {
      EXPECT_EQ(missing_, 0u);
      if (owner_->fail_commit) return absl::ResourceExhaustedError("disk full");
      ++owner_->committed;
      return absl::OkStatus();
    }

   private:
    FakeStore* const owner_;
    uint64_t missing_;
  };
};

class SessionManagerTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(SessionManager::Options options) {
    options.part.stall_timeout = std::chrono::hours(1);
    manager_ = std::make_unique<SessionManager>(&store_, &tcp_, nullptr, options,
                                                [this](const PartReport& report) {
                                                  MutexLock lock(&mutex_);
                                                  reports_.push_back(report);
                                                  reported_.NotifyAll();
                                                });
  }

  static RepairPart Part(RepairId repair_id, uint32_t attempt = 0) {
    RepairPart part;
    part.repair_id = repair_id;
    part.attempt = attempt;
    part.grid = {0, 1000, 100};
    HopSpec& hop = part.hops.emplace_back();
    hop.slices = LaneSlices::All(10);
    hop.rows = {0};
    hop.block = LocalBlock{"block", 1000, {3}};
    hop.outputs.push_back({{repair_id, attempt, 0, 0, 0}, {}, "next", {0}});
    EXPECT_TRUE(ValidatePart(part).ok());
    return part;
  }

  std::vector<PartReport> WaitForReports(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(&mutex_);
    while (reports_.size() < count && reported_.WaitUntil(lock, deadline)) {
    }
    EXPECT_EQ(reports_.size(), count);
    return reports_;
  }

  // Refused with nothing left behind.
  void ExpectRefused(RepairPart part, absl::StatusCode code, const std::string& text) {
    const SessionCounts before = manager_->counts();
    const int open_before = tcp_.open;
    const absl::Status status = manager_->Start(std::move(part));
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_EQ(manager_->counts().active_sessions, before.active_sessions);
    EXPECT_EQ(manager_->counts().buffer_bytes, before.buffer_bytes);
    EXPECT_EQ(tcp_.open, open_before);
  }

  FakeStore store_;
  IdleTransport tcp_;
  Mutex mutex_;
  CondVar reported_;
  std::vector<PartReport> reports_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<SessionManager> manager_;
};

TEST_F(SessionManagerTest, APartThatEndsIsReportedAndLeavesNothing) {
  tcp_.flows = true;
  ASSERT_TRUE(manager_->Start(Part(5, 2)).ok());
  const std::vector<PartReport> reports = WaitForReports(1);
  EXPECT_EQ(reports[0].repair_id, 5u);
  EXPECT_EQ(reports[0].attempt, 2u);
  EXPECT_TRUE(reports[0].status.ok()) << reports[0].status;
  EXPECT_EQ(reports[0].traffic.block_bytes_read, 1000u);
  manager_->Drain(std::chrono::seconds(20));
  const SessionCounts counts = manager_->counts();
  EXPECT_EQ(counts.active_sessions, 0u);
  EXPECT_EQ(counts.buffer_bytes, 0u);
  EXPECT_EQ(counts.parts_done, 1u);
  EXPECT_EQ(counts.parts_failed, 0u);
  EXPECT_EQ(counts.traffic.block_bytes_read, 1000u);
  EXPECT_EQ(tcp_.open, 0);
}

TEST_F(SessionManagerTest, ARunningPartHoldsItsBuffers) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  EXPECT_EQ(manager_->counts().active_sessions, 1u);
  EXPECT_EQ(manager_->counts().buffer_bytes, PartBufferBytes(Part(1), {}));
  EXPECT_GT(manager_->counts().buffer_bytes, 0u);
  EXPECT_EQ(tcp_.open, 1);
}

TEST_F(SessionManagerTest, CancelEndsTheAttemptsUpToTheOneNamed) {
  ASSERT_TRUE(manager_->Start(Part(1, 3)).ok());
  ASSERT_TRUE(manager_->Start(Part(2, 0)).ok());
  EXPECT_EQ(manager_->Cancel(1, 2), 0u);
  EXPECT_EQ(manager_->Cancel(7, 9), 0u);
  EXPECT_EQ(manager_->Cancel(1, 3), 1u);
  const std::vector<PartReport> reports = WaitForReports(1);
  EXPECT_EQ(reports[0].repair_id, 1u);
  EXPECT_TRUE(absl::IsCancelled(reports[0].status)) << reports[0].status;
}

TEST_F(SessionManagerTest, ANewerAttemptReplacesTheOlder) {
  ASSERT_TRUE(manager_->Start(Part(1, 0)).ok());
  ASSERT_TRUE(manager_->Start(Part(1, 1)).ok());
  std::vector<PartReport> reports = WaitForReports(1);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].attempt, 0u);
  EXPECT_TRUE(absl::IsCancelled(reports[0].status)) << reports[0].status;
  // The older one may still be on its way out.
  EXPECT_GE(manager_->Cancel(1, 1), 1u) << "the newer one runs on";
  reports = WaitForReports(2);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[1].attempt, 1u);
}

TEST_F(SessionManagerTest, TheSameOrAnOlderAttemptIsRefused) {
  ASSERT_TRUE(manager_->Start(Part(1, 1)).ok());
  for (const uint32_t attempt : {0u, 1u}) {
    ExpectRefused(Part(1, attempt), absl::StatusCode::kAlreadyExists,
                  "attempt 1 of repair 0000000000000001 runs here");
  }
  EXPECT_TRUE(manager_->Start(Part(2, 0)).ok()) << "another repair is not concerned";
}

TEST_F(SessionManagerTest, SessionsAreLimited) {
  Make({.max_sessions = 2});
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ASSERT_TRUE(manager_->Start(Part(2)).ok());
  ExpectRefused(Part(3), absl::StatusCode::kResourceExhausted, "limit of 2 sessions");
  EXPECT_EQ(manager_->Cancel(1, 0), 1u);
  WaitForReports(1);
}

TEST_F(SessionManagerTest, BuffersAreLimited) {
  const uint64_t one = PartBufferBytes(Part(1), {});
  Make({.max_buffer_bytes = 2 * one - 1});
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ExpectRefused(Part(2), absl::StatusCode::kResourceExhausted,
                "the part needs " + std::to_string(one) + " bytes of slice buffers, " +
                    std::to_string(one - 1) + " are free");
}

TEST_F(SessionManagerTest, AMissingBlockIsNotFound) {
  RepairPart part = Part(1);
  part.hops[0].block->block_id = "other";
  ExpectRefused(part, absl::StatusCode::kNotFound, "block other");
}

TEST_F(SessionManagerTest, ABlockOfAnotherLengthIsRefused) {
  RepairPart part = Part(1);
  part.hops[0].block->bytes = 1001;
  ExpectRefused(part, absl::StatusCode::kFailedPrecondition,
                "block block has 1000 bytes, the catalog says 1001");
}

TEST_F(SessionManagerTest, AStreamThatCannotBeOfferedLeavesNothing) {
  tcp_.refuse = true;
  ExpectRefused(Part(1), absl::StatusCode::kAlreadyExists, "expected already");
  tcp_.refuse = false;
  EXPECT_TRUE(manager_->Start(Part(1)).ok()) << "and nothing stands in the way afterwards";
}

TEST_F(SessionManagerTest, RequestorsAndRedisAreNotServedWithoutBeingSetUp) {
  RepairPart requestor = Part(1);
  requestor.hops[0].stored_rows = {0};
  ExpectRefused(requestor, absl::StatusCode::kInvalidArgument, "no block is named");
  RepairPart redis = Part(1);
  redis.transport = TransportKind::kRedis;
  ExpectRefused(redis, absl::StatusCode::kFailedPrecondition, "no redis-server");
}

// A part that stores what it computes from its own block, and sends it on as well.
TEST_F(SessionManagerTest, AHostedBlockIsStoredOrLeavesNothing) {
  const auto hosting = [](RepairId repair_id) {
    RepairPart part = Part(repair_id);
    part.hops[0].stored_rows = {0};
    part.stores = {{0, "new", 1000}};
    EXPECT_TRUE(ValidatePart(part).ok()) << ValidatePart(part);
    return part;
  };
  store_.full = true;
  ExpectRefused(hosting(1), absl::StatusCode::kResourceExhausted, "no block root has room");
  store_.full = false;

  ASSERT_TRUE(manager_->Start(hosting(1)).ok());
  EXPECT_EQ(manager_->Cancel(1, 0), 1u);
  EXPECT_TRUE(absl::IsCancelled(WaitForReports(1)[0].status));
  EXPECT_EQ(store_.committed, 0);
  EXPECT_EQ(store_.writers, 0) << "nothing is left when the report goes out";

  tcp_.flows = true;
  store_.fail_commit = true;
  ASSERT_TRUE(manager_->Start(hosting(2)).ok());
  const absl::Status full = WaitForReports(2)[1].status;
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("store block new"));

  store_.fail_commit = false;
  ASSERT_TRUE(manager_->Start(hosting(3)).ok());
  EXPECT_TRUE(WaitForReports(3)[2].status.ok());
  EXPECT_EQ(store_.committed, 1);
  EXPECT_EQ(store_.writers, 0);
}

TEST_F(SessionManagerTest, AProbeNeedsNoBlockAndReportsItsLink) {
  tcp_.flows = true;
  RepairPart probe = Part(1);
  probe.hops[0].block->block_id = "no such block";
  probe.hops[0].outputs[0].measured = true;
  ExpectRefused(probe, absl::StatusCode::kNotFound, "no such block");
  probe.probe = true;
  ASSERT_TRUE(manager_->Start(probe).ok());
  const PartReport sender = WaitForReports(1)[0];
  EXPECT_TRUE(sender.status.ok()) << sender.status;
  ASSERT_EQ(sender.links.size(), 1u);
  EXPECT_EQ(sender.links[0].to, "next");

  RepairPart receiver = Part(2);
  receiver.hops[0].outputs.clear();
  receiver.hops[0].stored_rows = {0};
  ExpectRefused(receiver, absl::StatusCode::kInvalidArgument, "no block is named");
  receiver.probe = true;
  ASSERT_TRUE(manager_->Start(receiver).ok());
  EXPECT_TRUE(WaitForReports(2)[1].status.ok());
  EXPECT_EQ(store_.committed, 0);
}

TEST_F(SessionManagerTest, DrainCancelsWhatDoesNotEndInTime) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  EXPECT_FALSE(manager_->draining());
  manager_->Drain(Duration(0));
  EXPECT_TRUE(manager_->draining());
  const std::vector<PartReport> reports = WaitForReports(1);
  EXPECT_TRUE(absl::IsUnavailable(reports[0].status)) << reports[0].status;
  EXPECT_EQ(manager_->counts().active_sessions, 0u);
  EXPECT_EQ(manager_->counts().buffer_bytes, 0u);
  EXPECT_EQ(manager_->counts().parts_failed, 1u);
  ExpectRefused(Part(2), absl::StatusCode::kUnavailable, "shutting down");
}

TEST_F(SessionManagerTest, NothingIsAdmittedOnceTheHelperEnds) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  manager_->StopAdmitting();
  ExpectRefused(Part(2), absl::StatusCode::kUnavailable, "shutting down");
  EXPECT_EQ(manager_->counts().active_sessions, 1u) << "what runs goes on";
}

TEST_F(SessionManagerTest, ItsEndCancelsAndWaits) {
  ASSERT_TRUE(manager_->Start(Part(1)).ok());
  ASSERT_TRUE(manager_->Start(Part(2)).ok());
  manager_.reset();
  EXPECT_EQ(tcp_.open, 0);
  EXPECT_EQ(WaitForReports(2).size(), 2u);
}

}  // namespace
}  // namespace ecpipe
