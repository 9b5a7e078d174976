// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fault_points.h"
#include "codec/erasure_code.h"
#include "codec/gf256.h"
#include "coordinator/planning/planner.h"
#include "coordinator/planning/scheme.h"
#include "coordinator/repairs/part_builder.h"
#include "fakes/memory_block.h"
#include "fakes/memory_transport.h"
#include "net/data_server.h"
#include "net/tcp_transport.h"
#include "pipeline/part_runner.h"

namespace ecpipe {

inline constexpr uint64_t kBlockBytes = 100'003;

// One process that is all nodes: each node's part on a thread of its own, requestors too.
class Engines : public ::testing::Test {
 protected:
  void SetUp() override {
    code_ = *CreateErasureCode("rs(7,4)");
    std::mt19937 random(1);
    for (int i = 0; i < 7; ++i) {
      blocks_.emplace_back(kBlockBytes);
      if (i >= 4) continue;
      for (uint8_t& byte : blocks_.back()) byte = static_cast<uint8_t>(random());
    }
    for (int i = 4; i < 7; ++i) {
      for (size_t at = 0; at < kBlockBytes; ++at) {
        for (int j = 0; j < 4; ++j) {
          blocks_[i][at] ^= GfMultiply(code_->generator().at(i, j), blocks_[j][at]);
        }
      }
      stripe_.stripe_id = "s";
    }
    stripe_.block_bytes = kBlockBytes;
    for (int i = 0; i < 7; ++i) {
      stripe_.blocks.push_back({"b" + std::to_string(i), "n" + std::to_string(i)});
    }
    server_ = *DataServer::Start("127.0.0.1:0", {});
    transport_ = MakeTcpTransport(server_.get());
    options_.stall_timeout = std::chrono::seconds(20);
    options_.ring_bytes = 16 << 10;
  }
  void TearDown() override { DisarmAllFaults(); }

  RepairPlan Plan(const std::string& scheme, const std::vector<int>& failed,
                  const SliceGrid& grid) {
    PlanRequest request;
    request.scheme = scheme;
    request.grid = grid;
    std::vector<int> survivors;
    for (int i = 6; i >= 0; --i) {
      if (std::find(failed.begin(), failed.end(), i) == failed.end()) survivors.push_back(i);
    }
    request.equation = *code_->Equation(failed, survivors);
    request.survivors = survivors;
    request.code = code_;
    for (const BlockPlace& place : stripe_.blocks) request.block_nodes.push_back(place.node);
    for (size_t i = 0; i < failed.size(); ++i) {
      request.requestors.push_back("r" + std::to_string(i));
    }
    return *MakePlan(request);
  }

  // Runs every part and returns what each node's Run() said.
  std::map<std::string, absl::Status> Run(const RepairPlan& plan,
                                          MemorySink::Order order = MemorySink::Order::kAny) {
    PartContext context;
    context.repair_id = ++repair_id_;
    context.stripe = &stripe_;
    context.new_token = [] { return EdgeToken{1, 2, 3}; };
    for (const PlanLane& lane : plan.lanes) {
      for (const PlanHop& hop : lane.hops) context.addresses[hop.node] = server_->address();
    }
    const auto parts = BuildParts(plan, context);
    EXPECT_TRUE(parts.ok()) << parts.status();
    sinks_.clear();
    std::map<std::string, absl::Status> outcome;
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<PartRunner>> runners;
    for (const auto& [node, part] : *parts) {
      EXPECT_TRUE(ValidatePart(part).ok()) << ValidatePart(part);
      sinks_[node] = std::make_unique<MemorySink>(plan.grid, order);
      auto runner =
          PartRunner::Create(part, Open(part), transport_.get(), sinks_[node].get(), options_);
      EXPECT_TRUE(runner.ok()) << runner.status();
      EXPECT_GT(PartBufferBytes(part, options_), 0u);
      absl::Status* status = &outcome[node];
      threads.emplace_back([raw = runner->get(), status] { *status = raw->Run(); });
      runners.push_back(*std::move(runner));
    }
    for (std::thread& thread : threads) thread.join();
    return outcome;
  }

  PartRunner::Blocks Open(const RepairPart& part) {
    PartRunner::Blocks blocks;
    for (size_t i = 0; i < part.hops.size(); ++i) {
      if (!part.hops[i].block) continue;
      const int index = part.hops[i].block->block_id[1] - '0';
      const uint64_t fail_from = index == failing_block_ ? failing_from_ : UINT64_MAX;
      blocks[i] =
          std::make_unique<MemoryBlock>(blocks_[index], MemoryBlock::Options{fail_from, cached_});
    }
    return blocks;
  }

  void ExpectRepaired(const std::string& scheme, const std::vector<int>& failed,
                      const SliceGrid& grid) {
    SCOPED_TRACE(scheme + " f=" + std::to_string(failed.size()) + " slice " +
                 std::to_string(grid.slice_bytes));
    for (const auto& [node, status] : Run(Plan(scheme, failed, grid))) {
      EXPECT_TRUE(status.ok()) << node << ": " << status;
    }
    for (size_t row = 0; row < failed.size(); ++row) {
      const auto& rows = sinks_.at("r" + std::to_string(row))->rows();
      ASSERT_EQ(rows.count(static_cast<Row>(row)), 1u);
      const auto begin = blocks_[failed[row]].begin() + static_cast<std::ptrdiff_t>(grid.offset);
      EXPECT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(grid.bytes),
                             rows.at(static_cast<Row>(row)).begin()));
    }
  }

  void ExpectEverySchemeAndShape() {
    for (const bool cached : {true, false}) {
      cached_ = cached;
      for (const std::string& scheme : SchemesForLostBlocks()) {
        for (const std::vector<int>& failed : {std::vector<int>{0}, {2, 5}, {1, 3, 6}}) {
          ExpectRepaired(scheme, failed, {0, kBlockBytes, 4096});
          ExpectRepaired(scheme, failed, {12'345, 54'321, 1000});
          ExpectRepaired(scheme, failed, {0, kBlockBytes, 1u << 20});
          ExpectRepaired(scheme, failed, {kBlockBytes - 1, 1, 7});
        }
        ExpectRepaired(scheme, {4}, {0, 300, 1});
      }
    }
  }

  std::shared_ptr<const ErasureCode> code_;
  std::vector<std::vector<uint8_t>> blocks_;
  Stripe stripe_;
  std::unique_ptr<DataServer> server_;
  std::unique_ptr<Transport> transport_;
  PartOptions options_;
  RepairId repair_id_ = 0;
  int failing_block_ = -1;
  uint64_t failing_from_ = 50'000;
  bool cached_ = true;
  std::map<std::string, std::unique_ptr<MemorySink>> sinks_;
};

}  // namespace ecpipe
