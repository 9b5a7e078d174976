// SPDX-License-Identifier: Apache-2.0
// Whole plans, run by real engines on threads, over loopback TCP and within memory, compared with a
// plain computation.
#include "unit/pipeline/engines.h"

#include <atomic>
#include <filesystem>
#include <functional>
#include <new>
#include <thread>

#include "base/fault_points.h"

namespace ecpipe::part_runner_test {
namespace {

TEST_F(Engines, EverySchemeAndShape) { ExpectEverySchemeAndShape(); }

TEST_F(Engines, EverySchemeAndShapeInMemory) {
  transport_ = MakeMemoryTransport({});
  ExpectEverySchemeAndShape();
}

// Streams so small that every frame goes through in pieces.
TEST_F(Engines, LanesInMemoryThatTrickle) {
  transport_ = MakeMemoryTransport({.stream_bytes = 33});
  for (const std::string& scheme : SchemesForLostBlocks()) {
    ExpectRepaired(scheme, {2, 5}, {12'345, 5'432, 1000});
  }
}

TEST_F(Engines, LanesThatInterleaveArriveInOrder) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  const uint32_t count = plan.grid.slice_count();
  plan.lanes.push_back(plan.lanes[0]);
  plan.lanes[0].slices = *LaneSlices::Create({{0, (count + 1) / 2, 2}}, count);
  plan.lanes[1].slices = *LaneSlices::Create({{1, count / 2, 2}}, count);
  ASSERT_TRUE(ValidatePlan(plan).ok()) << ValidatePlan(plan);
  for (const auto& [node, status] : Run(plan, MemorySink::Order::kAscending)) {
    EXPECT_TRUE(status.ok()) << node << ": " << status;
  }
  EXPECT_EQ(sinks_.at("r0")->rows().at(0), blocks_[0]);
}

// A limit so low that the whole takes ten times the stall timeout, and some frames more than it.
TEST_F(Engines, WaitingForTheRateLimitIsNoStall) {
  RateLimiter limiter(&Clock::System());
  options_.stall_timeout = std::chrono::milliseconds(300);
  options_.send_limiter = &limiter;
  limiter.SetRate(100'000);
  const TimePoint begun = Clock::System().Now();
  RepairPlan plan = Plan("rp", {0}, {0, 50'000, 1000});
  for (const auto& [node, status] : Run(plan)) EXPECT_TRUE(status.ok()) << node << ": " << status;
  // Four helpers send 50 frames of 1,040 bytes each; the first 20 ms come at once.
  EXPECT_GT(Seconds(Clock::System().Now() - begun), (4 * 50 * 1040 - 10'000) / 100e3);
  EXPECT_EQ(sinks_.at("r0")->rows().at(0),
            std::vector<uint8_t>(blocks_[0].begin(), blocks_[0].begin() + 50'000));
}

// The requestor of a star takes what four helpers send at once.
TEST_F(Engines, ALimitOfWhatIsReceivedHoldsForAllInputsTogether) {
  RateLimiter limiter(&Clock::System());
  options_.receive_limiter = &limiter;
  limiter.SetRate(100'000);
  const TimePoint begun = Clock::System().Now();
  RepairPlan plan = Plan("conventional", {0}, {0, 25'000, 1000});
  for (const auto& [node, status] : Run(plan)) EXPECT_TRUE(status.ok()) << node << ": " << status;
  // 25 frames of each; the first 20 ms come at once, and of the last frame the turn is enough.
  EXPECT_GT(Seconds(Clock::System().Now() - begun), (4 * 25 * 1040 - 10'000) / 100e3);
  EXPECT_EQ(sinks_.at("r0")->rows().at(0),
            std::vector<uint8_t>(blocks_[0].begin(), blocks_[0].begin() + 25'000));
}

TEST_F(Engines, EverySchemeUnderALimitOfWhatIsReceived) {
  RateLimiter limiter(&Clock::System());
  options_.receive_limiter = &limiter;
  limiter.SetRate(20e6);
  for (const std::string& scheme : SchemesForLostBlocks()) {
    ExpectRepaired(scheme, {2, 5}, {0, kBlockBytes, 5000});
  }
}

TEST_F(Engines, ARaisedLimitReachesPartsUnderWay) {
  RateLimiter limiter(&Clock::System());
  options_.send_limiter = &limiter;
  limiter.SetRate(1000);  // 400 s
  std::thread raise([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // sleep-ok: parts run meanwhile
    limiter.SetRate(0);
  });
  ExpectRepaired("rp-cyclic", {0}, {0, kBlockBytes, 1000});
  raise.join();
}

TEST_F(Engines, EverySchemeUnderALimit) {
  RateLimiter limiter(&Clock::System());
  options_.send_limiter = &limiter;
  limiter.SetRate(20e6);
  for (const std::string& scheme : SchemesForLostBlocks()) {
    ExpectRepaired(scheme, {2, 5}, {0, kBlockBytes, 5000});
  }
}

// Two lanes out of one node; the receiver of the first does not come for a while.
TEST_F(Engines, NoLaneRunsFarAheadOfAnother) {
  RepairPlan plan = Plan("rp", {0}, {0, 100'000, 1000});
  plan.lanes[0].hops = {{.node = "n1", .block_index = 1, .rows = {0}, .coefficients = {1}},
                        {.node = "r0", .rows = {0}, .inputs = {{0, {0}, {}}}, .stored_rows = {0}}};
  plan.lanes.push_back(plan.lanes[0]);
  for (uint32_t lane : {0u, 1u})
    plan.lanes[lane].slices = *LaneSlices::Create({{lane, 50, 2}}, 100);
  PartContext context;
  context.repair_id = 101;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  context.addresses["n1"] = server_->address();
  auto parts = *BuildParts(plan, context);
  auto sender = *PartRunner::Create(parts.at("n1"), Open(parts.at("n1")), transport_.get(), nullptr,
                                    options_);
  absl::Status sent;
  std::thread thread([&] { sent = sender->Run(); });

  const std::vector<HopSpec>& requestor = parts.at("r0").hops;
  std::vector<uint8_t> bytes(1000);
  uint32_t next[] = {0, 1};
  constexpr int kPatienceMillis = 20'000;
  constexpr int kQuietMillis = 300;
  const auto receive = [&](SliceReceiver* receiver, uint32_t lane, int millis) {
    FrameHeader header;
    header.repair_id = 101;
    header.lane = lane;
    header.slice_index = next[lane];
    header.payload_bytes = 1000;
    while (true) {
      const absl::StatusOr<bool> complete = receiver->TryReceive(header, bytes);
      EXPECT_TRUE(complete.ok()) << complete.status();
      if (!complete.ok()) return false;
      if (*complete) break;
      pollfd polled = receiver->poll_fd();
      if (::poll(&polled, 1, millis) == 0) return false;
    }
    next[lane] += 2;
    return true;
  };
  auto second = *transport_->Connect(requestor[1].inputs[0], {50, 1000});
  // Slice 0 is missing: nothing from 0 + 4 times two lanes on is sent.
  while (next[1] < 9 && receive(second.get(), 1, kPatienceMillis)) {
  }
  EXPECT_EQ(next[1], 9u);
  EXPECT_FALSE(receive(second.get(), 1, kQuietMillis));
  auto first = *transport_->Connect(requestor[0].inputs[0], {50, 1000});
  bool flows = true;
  while (flows && (next[0] < 100 || next[1] < 100)) {
    if (next[0] < 100) flows = receive(first.get(), 0, kPatienceMillis);
    if (flows && next[1] < 100) flows = receive(second.get(), 1, kPatienceMillis);
  }
  EXPECT_TRUE(flows);
  first.reset();
  second.reset();
  thread.join();
  EXPECT_TRUE(sent.ok()) << sent;
}

TEST_F(Engines, ADiskErrorReachesTheRequestorWithTheReason) {
  failing_block_ = 5;
  for (const bool in_memory : {false, true}) {
    if (in_memory) transport_ = MakeMemoryTransport({});
    for (const bool cached : {true, false}) {
      cached_ = cached;
      for (const char* scheme : {"conventional", "ppr", "rp"}) {
        const auto outcome = Run(Plan(scheme, {0}, {0, kBlockBytes, 1000}));
        const absl::Status& status = outcome.at("r0");
        EXPECT_FALSE(status.ok()) << scheme;
        EXPECT_NE(status.ToString().find("bad sector"), std::string::npos) << status;
        EXPECT_NE(status.ToString().find("b5"), std::string::npos) << status;
        EXPECT_FALSE(outcome.at("n5").ok());
      }
    }
  }
}

// In a ring the failed node is before and behind every other one, so that what reaches the
// requestor first can be a consequence. The failed node itself, which tells the coordinator, knows
// the reason.
TEST_F(Engines, ADiskErrorEndsEveryLaneOfARing) {
  failing_block_ = 5;
  for (const bool cached : {true, false}) {
    cached_ = cached;
    const auto outcome = Run(Plan("rp-cyclic", {0}, {0, kBlockBytes, 1000}));
    for (const auto& [node, status] : outcome) {
      EXPECT_FALSE(status.ok()) << node;
      const std::string culprit = node == "n5" ? "bad sector" : "node ";
      EXPECT_NE(status.ToString().find(culprit), std::string::npos) << node << ": " << status;
    }
  }
}

TEST_F(Engines, ASilentPeerIsNamedWhenTimeIsUp) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  PartContext context;
  context.repair_id = 99;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  const RepairPart part = BuildParts(plan, context)->at("r0");
  options_.stall_timeout = std::chrono::milliseconds(200);
  MemorySink sink(plan.grid, MemorySink::Order::kAny);
  auto runner = PartRunner::Create(part, {}, transport_.get(), &sink, options_);
  ASSERT_TRUE(runner.ok());
  const absl::Status status = (*runner)->Run();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_NE(status.ToString().find("slice 0 from node " + part.hops[0].inputs[0].node),
            std::string::npos)
      << status;
}

// A block on a disk, which tells when it is read.
class NotedBlock : public BlockReader {
 public:
  explicit NotedBlock(std::shared_ptr<Wakeup> read) : read_(std::move(read)) {}
  uint64_t bytes() const override { return kBlockBytes; }
  absl::Status ReadAt(uint64_t, std::span<uint8_t>) override {
    read_->Signal();
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<Wakeup> read_;
};

// Else the disks of a path would seek one after the other.
TEST_F(Engines, AHopAsksItsDiskBeforeAnythingComesFromTheHopsBeforeIt) {
  RepairPlan plan = Plan("rp", {0}, {0, 1000, 1000});
  PartContext context;
  context.repair_id = 98;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  const RepairPart part = BuildParts(plan, context)->at(plan.lanes[0].hops[1].node);
  ASSERT_EQ(part.hops[0].inputs.size(), 1u);
  const auto read = std::make_shared<Wakeup>();
  PartRunner::Blocks blocks;
  blocks[0] = std::make_unique<NotedBlock>(read);
  const auto runner =
      PartRunner::Create(part, std::move(blocks), transport_.get(), nullptr, options_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  std::thread thread([&] { EXPECT_TRUE(absl::IsCancelled((*runner)->Run())); });
  pollfd polled{read->fd(), POLLIN, 0};
  constexpr int kPatienceMillis = 10'000;  // less than a part's with the hop before it
  EXPECT_EQ(::poll(&polled, 1, kPatienceMillis), 1);
  (*runner)->Cancel(absl::CancelledError("seen"));
  thread.join();
}

TEST_F(Engines, CancelEndsARunThatWaits) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  PartContext context;
  context.repair_id = 100;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  const RepairPart part = BuildParts(plan, context)->at("r0");
  MemorySink sink(plan.grid, MemorySink::Order::kAny);
  auto runner = *PartRunner::Create(part, {}, transport_.get(), &sink, options_);
  absl::Status status;
  std::thread thread([&] { status = runner->Run(); });
  runner->Cancel(absl::CancelledError("enough"));
  thread.join();
  EXPECT_EQ(status, absl::CancelledError("enough"));
}

// Calls a function at its first slice, and counts.
class FirstWriteSink : public SliceSink {
 public:
  explicit FirstWriteSink(std::function<void()> at_first) : at_first_(std::move(at_first)) {}
  bool Ready(Row, uint32_t) override { return true; }
  absl::Status Write(Row, uint32_t, std::span<const uint8_t>) override {
    if (writes++ == 0) at_first_();
    return absl::OkStatus();
  }
  int writes = 0;

 private:
  const std::function<void()> at_first_;
};

TEST_F(Engines, WithoutMemoryAPartFailsAndTellsTheOthers) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  PartContext context;
  context.repair_id = 102;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  std::map<std::string, RepairPart> parts = *BuildParts(plan, context);
  std::map<std::string, std::unique_ptr<PartRunner>> runners;
  FirstWriteSink sink([] { throw std::bad_alloc(); });
  for (const auto& [node, part] : parts) {
    runners[node] = *PartRunner::Create(part, Open(part), transport_.get(),
                                        node == "r0" ? &sink : nullptr, options_);
  }
  std::map<std::string, absl::Status> ended;
  for (const auto& [node, runner] : runners) ended[node];
  std::vector<std::thread> threads;
  for (const auto& [node, runner] : runners) {
    threads.emplace_back([&, at = &ended.at(node), each = runner.get()] { *at = each->Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(absl::IsResourceExhausted(ended.at("r0"))) << ended.at("r0");
}

TEST_F(Engines, CancelEndsARunThatAlwaysHasSomethingToDo) {
  constexpr uint32_t kSliceBytes = 200;
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, kSliceBytes});
  PartContext context;
  context.repair_id = 101;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  std::map<std::string, std::unique_ptr<PartRunner>> runners;
  std::vector<std::thread> helpers;
  FirstWriteSink sink([&] {
    // All that there is to come waits in the socket from then on.
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(10);
    for (const auto& [node, runner] : runners) {
      if (node == "r0") continue;
      while (runner->traffic().bytes_sent < kBlockBytes && Clock::System().Now() < give_up) {
        std::this_thread::yield();
      }
      EXPECT_GE(runner->traffic().bytes_sent, kBlockBytes) << node;
    }
    runners.at("r0")->Cancel(absl::CancelledError("enough"));
  });
  const auto parts = BuildParts(plan, context);
  for (const auto& [node, part] : *parts) {
    runners[node] = *PartRunner::Create(part, Open(part), transport_.get(),
                                        node == "r0" ? &sink : nullptr, options_);
  }
  for (const auto& [node, runner] : runners) {
    if (node == "r0") continue;
    helpers.emplace_back([raw = runner.get()] { static_cast<void>(raw->Run()); });
  }
  EXPECT_EQ(runners.at("r0")->Run(), absl::CancelledError("enough"));
  for (std::thread& helper : helpers) helper.join();
  EXPECT_LT(sink.writes, static_cast<int>(kBlockBytes / kSliceBytes / 2));
}

// Takes one slice, and no other.
class OneSliceSink : public SliceSink {
 public:
  bool Ready(Row, uint32_t slice_index) override { return slice_index == 0; }
  absl::Status Write(Row, uint32_t, std::span<const uint8_t>) override { return absl::OkStatus(); }
};

TEST_F(Engines, AnOutputThatTakesNoMoreIsNoDiskThatHangs) {
  RepairPlan plan = Plan("rp", {0}, {0, kBlockBytes, 1000});
  PartContext context;
  context.repair_id = 102;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{}; };
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = server_->address();
  RepairPart part = BuildParts(plan, context)->at(plan.lanes[0].hops[0].node);
  HopSpec& hop = part.hops[0];
  ASSERT_TRUE(hop.inputs.empty() && hop.block);
  hop.outputs.clear();
  hop.stored_rows = hop.rows;
  options_.ring_bytes = 8 * 1000;
  PartRunner::Blocks blocks;
  blocks[0] = std::make_unique<MemoryBlock>(blocks_[1], MemoryBlock::Options{.cached = false});
  OneSliceSink sink;
  auto runner = *PartRunner::Create(part, std::move(blocks), transport_.get(), &sink, options_);
  std::thread thread([&] { static_cast<void>(runner->Run()); });
  // The ring is full again but for the slot of the slice that was taken.
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(10);
  while (runner->traffic().block_bytes_read < 8 * 1000 && Clock::System().Now() < give_up) {
    std::this_thread::yield();
  }
  std::vector<HopProgress> progress;
  EXPECT_TRUE(runner->Progress(std::chrono::seconds(10), &progress));
  EXPECT_EQ(runner->traffic().block_bytes_read, 8u * 1000);
  EXPECT_TRUE(progress.size() == 1 && !progress[0].waits_for_disk);
  runner->Cancel(absl::CancelledError("enough"));
  thread.join();
}

TEST_F(Engines, FaultsInTheMiddleLeaveNoDescriptors) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  Run(Plan("rp", {0}, {0, kBlockBytes, 1000}));
  // The data server closes on its own thread: what it holds may go a moment later.
  const auto falls_to = [&](auto count) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (descriptors() > count && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // sleep-ok: no event
    }
    return descriptors() == count;
  };
  const auto before = descriptors();
  for (int hits : {0, 3, 50}) {
    ArmFault("hop.send_slice", {.after_hits = hits});
    EXPECT_FALSE(Run(Plan("ppr", {0}, {0, kBlockBytes, 1000})).at("r0").ok());
    DisarmAllFaults();
  }
  EXPECT_TRUE(falls_to(before)) << descriptors() << " instead of " << before;
}

}  // namespace
}  // namespace ecpipe::part_runner_test
