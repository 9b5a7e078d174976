// SPDX-License-Identifier: Apache-2.0
// Repairs that verify what they read by parity, run by real engines in memory: over each scheme and
// each corrupt block no slice with a damaged byte is handed over.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "codec/check_rows.h"
#include "codec/gf256.h"
#include "coordinator/planning/planner.h"
#include "coordinator/planning/scheme.h"
#include "coordinator/repairs/part_builder.h"
#include "fakes/memory_block.h"
#include "fakes/memory_transport.h"
#include "model/corrupt_block.h"
#include "pipeline/parity_check_sink.h"
#include "pipeline/part_runner.h"

namespace ecpipe::parity_check_test {
namespace {

constexpr uint64_t kBlockBytes = 5'003;
constexpr uint32_t kSliceBytes = 500;
constexpr int kBlocks = 7;
constexpr int kData = 4;

class ParityCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937 random(1);
    for (int i = 0; i < kBlocks; ++i) {
      blocks_.emplace_back(kBlockBytes);
      for (size_t at = 0; at < kBlockBytes; ++at) {
        uint8_t& byte = blocks_.back()[at];
        if (i < kData) byte = static_cast<uint8_t>(random());
        for (int j = 0; i >= kData && j < kData; ++j) {
          byte ^= GfMultiply(code_->generator().at(i, j), blocks_[static_cast<size_t>(j)][at]);
        }
      }
      stripe_.blocks.push_back({"b" + std::to_string(i), "n" + std::to_string(i)});
    }
    stripe_.stripe_id = "s";
    stripe_.block_bytes = kBlockBytes;
    options_.stall_timeout = std::chrono::seconds(20);
  }

  RepairPlan Plan(const std::string& scheme, const std::vector<int>& failed, uint32_t check_rows) {
    PlanRequest request;
    request.scheme = scheme;
    request.grid = {0, kBlockBytes, kSliceBytes};
    std::vector<int> survivors;
    for (int i = kBlocks - 1; i >= 0; --i) {
      if (std::find(failed.begin(), failed.end(), i) == failed.end()) survivors.push_back(i);
    }
    request.equation = code_->Equation(failed, survivors).value();
    EXPECT_TRUE(AddCheckRows(*code_, survivors, check_rows, &request.equation).ok());
    request.survivors = survivors;
    for (const BlockPlace& place : stripe_.blocks) request.block_nodes.push_back(place.node);
    request.requestors.assign(failed.size(), "r");
    const auto plan = MakePlan(request);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return *plan;
  }

  // Runs all parts; returns what the requestor's said.
  absl::Status Run(const RepairPlan& plan, MemorySink::Order order) {
    const auto transport = MakeMemoryTransport({});
    PartContext context;
    context.repair_id = 1;
    context.stripe = &stripe_;
    context.new_token = [] { return EdgeToken{1}; };
    for (const PlanLane& lane : plan.lanes) {
      for (const PlanHop& hop : lane.hops) context.addresses[hop.node] = "memory";
    }
    const auto parts = BuildParts(plan, context).value();
    sink_ = std::make_unique<MemorySink>(plan.grid, order);
    ParityCheckSink check(parts.at("r"), sink_.get());
    std::map<std::string, absl::Status> outcome;
    std::vector<std::unique_ptr<PartRunner>> runners;
    for (const auto& [node, part] : parts) {
      EXPECT_TRUE(ValidatePart(part).ok()) << ValidatePart(part);
      EXPECT_EQ(part.check.rows, node == "r" ? plan.check.rows : 0);
      runners.push_back(
          PartRunner::Create(part, Open(part), transport.get(), &check, options_).value());
      outcome[node];
    }
    std::vector<std::thread> threads;
    for (const auto& runner : runners) {
      absl::Status* status = &outcome.at(NodeOf(parts, runner->part()));
      threads.emplace_back([raw = runner.get(), status] { *status = raw->Run(); });
    }
    for (std::thread& thread : threads) thread.join();
    corrupt_slice_ = check.corrupt_slice();
    return outcome.at("r");
  }

  static std::string NodeOf(const std::map<std::string, RepairPart>& parts,
                            const RepairPart& wanted) {
    for (const auto& [node, part] : parts) {
      const HopSpec& a = part.hops[0];
      const HopSpec& b = wanted.hops[0];
      if (a.lane == b.lane && a.hop == b.hop) return node;
    }
    return "";
  }

  PartRunner::Blocks Open(const RepairPart& part) {
    PartRunner::Blocks blocks;
    for (size_t i = 0; i < part.hops.size(); ++i) {
      if (!part.hops[i].block) continue;
      const auto index = static_cast<size_t>(part.hops[i].block->block_id[1] - '0');
      blocks[i] = std::make_unique<MemoryBlock>(blocks_[index], MemoryBlock::Options{});
    }
    return blocks;
  }

  const std::shared_ptr<const ErasureCode> code_ = CreateErasureCode("rs(7,4)").value();
  std::vector<std::vector<uint8_t>> blocks_;
  Stripe stripe_;
  PartOptions options_;
  std::unique_ptr<MemorySink> sink_;
  std::optional<uint32_t> corrupt_slice_;
};

TEST_F(ParityCheckTest, SoundBlocksAreHandedOverWhole) {
  for (const std::string& scheme : SchemesForLostBlocks()) {
    for (const uint32_t check_rows : {1u, 2u}) {
      SCOPED_TRACE(scheme);
      const RepairPlan plan = Plan(scheme, {2}, check_rows);
      EXPECT_EQ(plan.check.sources.size(), kData + check_rows);
      const absl::Status status = Run(plan, MemorySink::Order::kAny);
      EXPECT_TRUE(status.ok()) << status;
      ASSERT_EQ(sink_->rows().size(), 1u) << "check rows are not handed on";
      EXPECT_EQ(sink_->rows().at(0), blocks_[2]);
    }
  }
  const absl::Status two = Run(Plan("rp", {2, 5}, 1), MemorySink::Order::kAny);
  EXPECT_TRUE(two.ok()) << two;
  EXPECT_EQ(sink_->rows().at(0), blocks_[2]);
  EXPECT_EQ(sink_->rows().at(1), blocks_[5]);
}

TEST_F(ParityCheckTest, NoSliceWithADamagedByteIsHandedOver) {
  constexpr size_t kAt = 3'210;
  for (const std::string& scheme : SchemesForLostBlocks()) {
    for (const uint32_t check_rows : {1u, 2u}) {
      const RepairPlan plan = Plan(scheme, {2}, check_rows);
      for (const ParityCheck::Source& source : plan.check.sources) {
        const std::string id = stripe_.blocks[static_cast<size_t>(source.block_index)].block_id;
        SCOPED_TRACE(scheme + std::string(" corrupt ") + id);
        uint8_t& byte = blocks_[static_cast<size_t>(source.block_index)][kAt];
        byte ^= 0x10;
        const absl::Status status = Run(plan, MemorySink::Order::kAny);
        byte ^= 0x10;
        EXPECT_TRUE(absl::IsDataLoss(status)) << status;
        EXPECT_EQ(corrupt_slice_, kAt / plan.grid.slice_bytes);
        EXPECT_EQ(CorruptBlockOf(status), check_rows == 2 ? id : "");
        if (sink_->rows().empty()) continue;
        const std::vector<uint8_t>& got = sink_->rows().at(0);
        for (size_t at = 0; at < kBlockBytes; ++at) {
          ASSERT_TRUE(got[at] == blocks_[2][at] || got[at] == 0) << at;
        }
        EXPECT_EQ(got[kAt], 0) << "the slice was handed over";
      }
    }
  }
}

TEST_F(ParityCheckTest, SlicesInOrderAreVerifiedAsTheyCome) {
  const RepairPlan plan = Plan("rp", {0}, 1);
  const absl::Status status = Run(plan, MemorySink::Order::kAscending);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(sink_->rows().at(0), blocks_[0]);
}

TEST_F(ParityCheckTest, SeveralPlacesAreRefused) {
  PlanRequest request;
  request.scheme = "rp";
  request.grid = {0, kBlockBytes, kSliceBytes};
  const std::vector<int> survivors{1, 2, 3, 4, 6};
  request.equation = code_->Equation({{0, 5}}, survivors).value();
  ASSERT_TRUE(AddCheckRows(*code_, survivors, 1, &request.equation).ok());
  for (const BlockPlace& place : stripe_.blocks) request.block_nodes.push_back(place.node);
  request.requestors = {"r", "q"};
  EXPECT_TRUE(absl::IsInvalidArgument(MakePlan(request).status())) << MakePlan(request).status();
}

// A peer must not be able to make us drop rows, or store some without their check.
TEST_F(ParityCheckTest, PartsWithOddCheckRowsAreRefused) {
  PartContext context;
  context.repair_id = 1;
  context.stripe = &stripe_;
  context.new_token = [] { return EdgeToken{1}; };
  const RepairPlan plan = Plan("rp", {0}, 1);
  for (const PlanHop& hop : plan.lanes[0].hops) context.addresses[hop.node] = "memory";
  const RepairPart good = BuildParts(plan, context)->at("r");
  ASSERT_TRUE(ValidatePart(good).ok());
  RepairPart part = good;
  part.check.rows = 2;
  EXPECT_FALSE(ValidatePart(part).ok()) << "all rows would be check rows";
  part = good;
  part.check.rows = kMaxCheckRows + 1;
  EXPECT_FALSE(ValidatePart(part).ok());
  part = good;
  part.check.sources[0].column.clear();
  EXPECT_FALSE(ValidatePart(part).ok());
  part = good;
  part.check.rows = 0;
  EXPECT_FALSE(ValidatePart(part).ok());
}

}  // namespace
}  // namespace ecpipe::parity_check_test
