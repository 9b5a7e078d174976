// SPDX-License-Identifier: Apache-2.0
// Sessions over a transport that never moves a byte: a part runs until something ends it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "helper/sessions/session_manager.h"

namespace ecpipe {

// How many streams are open, over all that a transport made.
class IdleTransport : public Transport {
 public:
  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput&,
                                                         const StreamShape&) override {
    return std::make_unique<Receiver>();
  }
  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput&, const StreamShape&,
                                                     std::shared_ptr<Wakeup>) override {
    if (refuse) return absl::AlreadyExistsError("the data port already expects this stream");
    return std::make_unique<Sender>(this);
  }

  std::atomic<int> open{0};
  std::atomic<bool> refuse{false};
  std::atomic<bool> flows{false};  // everything is taken at once
  // Until when each stream that was told of an error may wait for that.
  std::vector<TimePoint> Told() {
    MutexLock lock(&mutex_);
    return told_;
  }

 private:
  class Receiver : public SliceReceiver {
   public:
    absl::StatusOr<bool> TryReceive(const FrameHeader&, std::span<uint8_t>) override {
      return false;
    }
    pollfd poll_fd() const override { return {-1, 0, 0}; }
    uint64_t bytes_received() const override { return 0; }
  };
  class Sender : public SliceSender {
   public:
    explicit Sender(IdleTransport* owner) : owner_(owner) { ++owner_->open; }
    ~Sender() override { --owner_->open; }
    absl::StatusOr<bool> TrySend(const FrameHeader&, std::span<const uint8_t>, Next) override {
      return owner_->flows.load();
    }
    absl::StatusOr<bool> TryFinish() override { return owner_->flows.load(); }
    absl::Status CheckPeer() override { return absl::OkStatus(); }
    void SendError(const FrameHeader&, const absl::Status&, TimePoint deadline) override {
      MutexLock lock(&owner_->mutex_);
      owner_->told_.push_back(deadline);
    }
    pollfd poll_fd() const override { return {-1, 0, 0}; }
    uint64_t bytes_sent() const override { return 0; }
    LinkTiming timing() const override { return {}; }

   private:
    IdleTransport* const owner_;
  };

  Mutex mutex_;
  std::vector<TimePoint> told_ ABSL_GUARDED_BY(mutex_);
};

// Holds back who comes, until it opens.
class Gate {
 public:
  void Pass() {
    MutexLock lock(&mutex_);
    ++waiting_;
    changed_.NotifyAll();
    while (closed_) changed_.Wait(lock);
  }
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
  }
  void Open() {
    MutexLock lock(&mutex_);
    closed_ = false;
    changed_.NotifyAll();
  }
  void AwaitWaiting(int count) {
    MutexLock lock(&mutex_);
    while (waiting_ < count) changed_.Wait(lock);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;  // that have come
};

class BlockOfZeros : public BlockReader {
 public:
  BlockOfZeros(std::shared_ptr<Gate> disk, std::string sha256)
      : disk_(std::move(disk)), sha256_(std::move(sha256)) {}
  uint64_t bytes() const override { return 1000; }
  std::string stored_sha256() const override { return sha256_; }
  absl::Status ReadAt(uint64_t, std::span<uint8_t> out) override {
    disk_->Pass();
    std::fill(out.begin(), out.end(), uint8_t{0});
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Gate> disk_;  // shared with the test: a hung read outlives its part
  const std::string sha256_;
};

class FakeStore : public BlockStore {
 public:
  absl::StatusOr<std::unique_ptr<BlockReader>> Open(const std::string& block_id) override {
    opens.Pass();
    if (throws) throw std::bad_alloc();
    if (block_id != "block") return absl::NotFoundError("block " + block_id + " is not here");
    return std::make_unique<BlockOfZeros>(disk, stored_sha256);
  }
  absl::StatusOr<std::unique_ptr<BlockWriter>> Create(const std::string& block_id,
                                                      uint64_t bytes) override {
    if (full) return absl::ResourceExhaustedError("no block root has room for " + block_id);
    return std::make_unique<Writer>(this, bytes);
  }
  absl::StatusOr<StoreInventory> TakeInventory() override { return StoreInventory{}; }
  bool missing_ends_are_zeros() const override { return zeros_follow; }

  const std::shared_ptr<Gate> disk = std::make_shared<Gate>();  // shared with hung reads
  Gate opens;
  Gate commits;
  bool full = false;
  bool throws = false;
  bool zeros_follow = false;
  std::string stored_sha256;  // of the block
  std::string noted_sha256;   // of the last block that was stored; read it once that has ended
  std::atomic<bool> fail_commit{false};
  std::atomic<bool> fail_write{false};
  std::atomic<int> writers{0};  // that exist
  std::atomic<int> created{0};
  std::atomic<uint64_t> written{0};  // bytes
  std::atomic<int> committed{0};

 private:
  class Writer : public BlockWriter {
   public:
    Writer(FakeStore* owner, uint64_t missing) : owner_(owner), missing_(missing) {
      ++owner_->writers;
      ++owner_->created;
    }
    ~Writer() override { --owner_->writers; }
    absl::Status WriteAt(uint64_t, std::span<const uint8_t> bytes) override {
      if (owner_->fail_write) return absl::ResourceExhaustedError("disk full");
      missing_ -= bytes.size();
      owner_->written += bytes.size();
      return absl::OkStatus();
    }
    absl::Status ReadAt(uint64_t, std::span<uint8_t> out) const override {
      std::fill(out.begin(), out.end(), uint8_t{0});
      return absl::OkStatus();
    }
    void NoteSha256(const std::string& sha256) override { owner_->noted_sha256 = sha256; }
    absl::Status Commit() override {
      owner_->commits.Pass();
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
    const absl::Status status = manager_->Start(std::move(part)).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(text));
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

}  // namespace ecpipe
