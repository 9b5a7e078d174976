// SPDX-License-Identifier: Apache-2.0
// Parts whose disk fails, and whose peers do next to nothing.
#include <sys/timerfd.h>
#include <unistd.h>

#include <atomic>

#include "unit/pipeline/engines.h"

namespace ecpipe::part_troubles_test {
namespace {

// A block that cannot be read, which counts how often somebody tries.
class BadBlock : public BlockReader {
 public:
  explicit BadBlock(std::atomic<int>* reads) : reads_(reads) {}
  uint64_t bytes() const override { return kBlockBytes; }
  absl::Status ReadAt(uint64_t, std::span<uint8_t>) override { return absl::DataLossError("bad"); }
  absl::StatusOr<bool> TryReadAt(uint64_t, std::span<uint8_t>) override {
    ++*reads_;
    return absl::DataLossError("bad");
  }

 private:
  std::atomic<int>* const reads_;
};

// A block on a disk, which cannot be read from its third slice on.
class LaterBadBlock : public BlockReader {
 public:
  uint64_t bytes() const override { return kBlockBytes; }
  absl::Status ReadAt(uint64_t offset, std::span<uint8_t>) override {
    return offset < 2000 ? absl::OkStatus() : absl::DataLossError("bad");
  }
};

// Whatever the hop before it does: nothing comes from there.
TEST_F(Engines, ADiskThatFailsIsToldAtOnceAndAskedOnce) {
  RepairPlan plan = Plan("rp", {0}, {0, 1000, 1000});
  PartContext context;
  context.repair_id = 97;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  const RepairPart part = BuildParts(plan, context)->at(plan.lanes[0].hops[1].node);
  std::atomic<int> reads{0};
  PartRunner::Blocks blocks;
  blocks[0] = std::make_unique<BadBlock>(&reads);
  const auto runner =
      PartRunner::Create(part, std::move(blocks), transport_.get(), nullptr, options_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const absl::Status status = (*runner)->Run();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_EQ(reads, 1);
}

// The same of a disk that has to be waited for, in a slice that is read ahead.
TEST_F(Engines, ADiskThatFailsLaterIsToldAtOnce) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  PartContext context;
  context.repair_id = 96;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  const RepairPart part = BuildParts(plan, context)->at(plan.lanes[0].hops[1].node);
  PartRunner::Blocks blocks;
  blocks[0] = std::make_unique<LaterBadBlock>();
  const auto runner =
      PartRunner::Create(part, std::move(blocks), transport_.get(), nullptr, options_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const absl::Status status = (*runner)->Run();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

// A stream on which a byte comes every twenty milliseconds, for ten seconds.
class TricklingTransport : public Transport {
 public:
  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput&,
                                                         const StreamShape&) override {
    return std::make_unique<Receiver>();
  }
  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput&, const StreamShape&,
                                                     std::shared_ptr<Wakeup>) override {
    return absl::UnimplementedError("nobody sends");
  }

 private:
  class Receiver : public SliceReceiver {
   public:
    Receiver() {
      constexpr timespec kEvery = {0, 20'000'000};
      const itimerspec setting = {kEvery, kEvery};
      ::timerfd_settime(timer_.get(), 0, &setting, nullptr);
    }
    absl::StatusOr<bool> TryReceive(const FrameHeader&, std::span<uint8_t>) override {
      uint64_t times = 0;
      if (::read(timer_.get(), &times, sizeof times) == sizeof times) ++bytes_;
      if (bytes_ < 500) return false;
      return absl::UnavailableError("the peer gave up first");
    }
    pollfd poll_fd() const override { return {timer_.get(), POLLIN, 0}; }
    uint64_t bytes_received() const override { return bytes_; }

   private:
    const UniqueFd timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
    uint64_t bytes_ = 0;
  };
};

TEST_F(Engines, APeerThatSendsAByteNowAndThenIsAsGoodAsSilent) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  PartContext context;
  context.repair_id = 95;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  const RepairPart part = BuildParts(plan, context)->at("r0");
  options_.stall_timeout = std::chrono::milliseconds(200);
  MemorySink sink(plan.grid, MemorySink::Order::kAny);
  TricklingTransport transport;
  const absl::Status status =
      (*PartRunner::Create(part, {}, &transport, &sink, options_))->Run();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

}  // namespace
}  // namespace ecpipe::part_troubles_test
