// SPDX-License-Identifier: Apache-2.0
// What the slice engine costs without a network and without disks: whole repairs over the transport
// within memory, in block bytes that helpers handle per CPU second, which is what one core can do.
// A helper handles a byte by reading it from its block, adding it to what it receives, and sending
// the sum: one copy, one multiply-add and two checksums, and two copies that stand for a socket.
//
// The bytes that the requestor gets are compared with a plain computation at the end.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "codec/kernel.h"
#include "coordinator/planning/planner.h"
#include "coordinator/repairs/part_builder.h"
#include "fakes/memory_block.h"
#include "fakes/memory_transport.h"
#include "pipeline/part_runner.h"

namespace ecpipe {
namespace {

// More of it than a cache holds, and enough for the making of rings and threads not to show.
constexpr uint64_t kBlockBytes = 8u << 20;
constexpr int kMostBlocks = 10;
constexpr char kRequestor[] = "requestor";

// Made once: all stripes have the same first blocks.
std::span<const uint8_t> DataBlock(int index) {
  static const std::vector<uint64_t> words = [] {
    std::mt19937_64 random(1);
    std::vector<uint64_t> made(kMostBlocks * kBlockBytes / sizeof(uint64_t));
    for (uint64_t& word : made) word = random();
    return made;
  }();
  ECPIPE_CHECK(index >= 0 && index < kMostBlocks);
  const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
  return {bytes + static_cast<uint64_t>(index) * kBlockBytes, kBlockBytes};
}

// A stripe of (k + 1, k) whose last block is lost, and the plan that rebuilds it.
class LostBlock {
 public:
  LostBlock(const std::string& scheme, int k, uint32_t slice_bytes) : k_(k) {
    const int n = k + 1;
    const std::string shape = "(" + std::to_string(n) + "," + std::to_string(k) + ")";
    const auto code = CreateErasureCode("rs" + shape).value();
    PlanRequest request;
    request.scheme = scheme;
    request.grid = {0, kBlockBytes, slice_bytes};
    request.requestors = {kRequestor};
    stripe_.stripe_id = "stripe";
    stripe_.block_bytes = kBlockBytes;
    for (int i = 0; i < n; ++i) {
      const std::string node = "node-" + std::to_string(i);
      stripe_.blocks.push_back({"block-" + std::to_string(i), node});
      request.block_nodes.push_back(node);
      context_.addresses[node] = "memory";
      if (i < k) request.survivors.push_back(i);
    }
    const int lost[] = {k};
    request.code = code;
    request.equation = code->Equation(lost, request.survivors).value();
    context_.stripe = &stripe_;
    context_.new_token = [] { return EdgeToken{}; };
    plan_ = MakePlan(request).value();
    Compute(request.equation);
  }

  // The parts of a repair of its own, so that no two share an edge.
  std::map<std::string, RepairPart> NewParts() {
    ++context_.repair_id;
    return BuildParts(plan_, context_).value();
  }

  std::unique_ptr<BlockReader> Open(const HopSpec& hop) const {
    if (!hop.block) return nullptr;
    const auto found = std::find_if(
        stripe_.blocks.begin(), stripe_.blocks.end(),
        [&](const BlockPlace& place) { return place.block_id == hop.block->block_id; });
    const auto index = static_cast<int>(found - stripe_.blocks.begin());
    return std::make_unique<MemoryBlock>(DataBlock(index), MemoryBlock::Options{});
  }

  const SliceGrid& grid() const { return plan_.grid; }
  bool Is(const std::vector<uint8_t>& rebuilt) const { return rebuilt == lost_; }
  int64_t handled_bytes() const { return k_ * static_cast<int64_t>(kBlockBytes); }

 private:
  void Compute(const RepairEquation& equation) {
    lost_.assign(kBlockBytes, 0);
    uint8_t* const rows[] = {lost_.data()};
    for (const EquationTerm& term : equation.terms) {
      const std::span<const uint8_t> block = DataBlock(term.block_index);
      CoefficientColumn(term.coefficients).MultiplyAdd(rows, block.data(), block.size());
    }
  }

  const int k_;
  Stripe stripe_;
  PartContext context_;
  RepairPlan plan_;
  std::vector<uint8_t> lost_;
};

// Every hop on this thread, each doing what it can in turn: the engine without threads and poll().
absl::Status RunHopsInTurn(LostBlock& lost, Transport* transport, MemorySink* sink) {
  const auto parts = lost.NewParts();
  std::vector<std::unique_ptr<HopRunner>> hops;
  for (const auto& [node, part] : parts) {
    const HopRunner::Context context{&part,
                                     transport,
                                     node == kRequestor ? sink : nullptr,
                                     std::make_shared<Wakeup>(),
                                     std::make_shared<ReadThread>(),
                                     {PartOptions{}.ring_bytes}};
    for (const HopSpec& spec : part.hops) {
      hops.push_back(HopRunner::Create(context, spec, lost.Open(spec)).value());
    }
  }
  const auto bytes_moved = [&] {
    uint64_t bytes = 0;
    for (const auto& hop : hops) bytes += hop->bytes_sent() + hop->bytes_received();
    return bytes;
  };
  // A hop moves when a slice does, or a piece of one that is larger than a stream's buffer.
  for (bool moved = true; moved;) {
    moved = false;
    bool done = true;
    const uint64_t bytes_before = bytes_moved();
    for (const auto& hop : hops) {
      if (hop->Done()) continue;
      const absl::StatusOr<bool> stepped = hop->Step(std::numeric_limits<uint32_t>::max());
      if (!stepped.ok()) return stepped.status();
      moved |= *stepped;
      done &= hop->Done();
    }
    if (done) return absl::OkStatus();
    moved |= bytes_moved() != bytes_before;
  }
  return absl::InternalError("the hops wait for each other");
}

// Every part on a thread of its own, as daemons run them.
absl::Status RunPartsOnThreads(LostBlock& lost, Transport* transport, MemorySink* sink) {
  std::vector<std::unique_ptr<PartRunner>> runners;
  for (auto& [node, part] : lost.NewParts()) {
    PartRunner::Blocks blocks;
    for (size_t i = 0; i < part.hops.size(); ++i) {
      if (part.hops[i].block) blocks[i] = lost.Open(part.hops[i]);
    }
    runners.push_back(PartRunner::Create(part, std::move(blocks), transport,
                                         node == kRequestor ? sink : nullptr, {})
                          .value());
  }
  std::vector<absl::Status> outcomes(runners.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < runners.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = runners[i]->Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& outcome : outcomes) {
    if (!outcome.ok()) return outcome;
  }
  return absl::OkStatus();
}

using Run = absl::Status (*)(LostBlock&, Transport*, MemorySink*);

// Arguments: k, slice bytes.
void Repair(benchmark::State& state, Run run, const std::string& scheme) {
  LostBlock lost(scheme, static_cast<int>(state.range(0)), static_cast<uint32_t>(state.range(1)));
  const std::unique_ptr<Transport> transport = MakeMemoryTransport({});
  MemorySink sink(lost.grid(), MemorySink::Order::kAny);
  for (auto _ : state) {
    const absl::Status status = run(lost, transport.get(), &sink);
    if (!status.ok()) {
      state.SkipWithError(status.ToString().c_str());
      return;
    }
  }
  if (!lost.Is(sink.rows().at(0))) state.SkipWithError("the rebuilt block is wrong");
  state.SetBytesProcessed(state.iterations() * lost.handled_bytes());
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"k", "slice"})->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
  for (const int64_t slice : {4 << 10, 32 << 10, 256 << 10, 1 << 20}) benchmark->Args({10, slice});
  for (const int64_t k : {2, 4}) benchmark->Args({k, 32 << 10});
}
BENCHMARK_CAPTURE(Repair, hops_in_turn_rp, RunHopsInTurn, "rp")->Apply(Shapes);
BENCHMARK_CAPTURE(Repair, threads_rp, RunPartsOnThreads, "rp")->Apply(Shapes);

void OneShape(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"k", "slice"})->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();
  benchmark->Args({10, 32 << 10});
}
BENCHMARK_CAPTURE(Repair, threads_rp_cyclic, RunPartsOnThreads, "rp-cyclic")->Apply(OneShape);
BENCHMARK_CAPTURE(Repair, threads_ppr, RunPartsOnThreads, "ppr")->Apply(OneShape);
BENCHMARK_CAPTURE(Repair, threads_conventional, RunPartsOnThreads, "conventional")->Apply(OneShape);

}  // namespace
}  // namespace ecpipe

BENCHMARK_MAIN();
