// SPDX-License-Identifier: Apache-2.0
// What planning one repair costs, for every scheme and by (n, k): from survivors to the parts that
// are handed out.
#include <benchmark/benchmark.h>

#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "coordinator/planning/path_search.h"
#include "coordinator/planning/plan_cost.h"
#include "coordinator/planning/scheme.h"
#include "coordinator/repairs/part_builder.h"

namespace ecpipe {
namespace {

constexpr uint64_t kBlockBytes = 64u << 20;
constexpr int kRackCount = 5;

// What is known of the cluster: nothing, the speed of each pair of nodes, or the rack of each node.
enum class Known { kNothing, kLinks, kRacks };

double RandomSpeed(std::mt19937_64& random) {
  return 1e6 + static_cast<double>(random() % 100'000'000);
}

// All that the coordinator has at hand when it is asked for the first `failed_count` blocks of a
// stripe of RS(n, k).
struct Asked {
  Asked(const std::string& scheme, int n, int k, int failed_count, Known known) {
    code = CreateErasureCode("rs(" + std::to_string(n) + "," + std::to_string(k) + ")").value();
    failed.resize(static_cast<size_t>(failed_count));
    std::iota(failed.begin(), failed.end(), 0);
    request.scheme = scheme;
    request.grid = {0, kBlockBytes, 32u << 10};
    request.code = code;
    for (int i = 0; i < n; ++i) {
      const std::string node = "node-" + std::to_string(i);
      if (i >= failed_count) request.survivors.push_back(i);
      request.block_nodes.push_back(node);
      context.addresses[node] = "127.0.0.1:7712";
      stripe.blocks.push_back({"file-s00000-b" + std::to_string(i), node});
    }
    for (int i = 0; i < failed_count; ++i) {
      request.requestors.push_back("requestor-" + std::to_string(i));
      // A requestor sends as well where a scheme has it forward what others want.
      context.addresses[request.requestors.back()] = "127.0.0.1:7712";
    }
    stripe.block_bytes = kBlockBytes;
    context.stripe = &stripe;
    context.new_token = [] { return EdgeToken{}; };
    if (known == Known::kLinks) LearnLinks();
    if (known == Known::kRacks) LearnRacks();
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  void LearnLinks() {
    std::mt19937_64 random(1);
    LinkTable links;
    for (const std::string& from : request.block_nodes) {
      for (const auto* receivers : {&request.block_nodes, &request.requestors}) {
        for (const std::string& to : *receivers) links[{from, to}] = RandomSpeed(random);
      }
    }
    request.cluster.links = std::make_shared<LinkTable>(std::move(links));
  }

  void LearnRacks() {
    int next = 0;
    for (const auto* nodes : {&request.block_nodes, &request.requestors}) {
      for (const std::string& node : *nodes) {
        request.cluster.nodes.push_back({node, "rack-" + std::to_string(next++ % kRackCount)});
      }
    }
  }

  std::shared_ptr<const ErasureCode> code;
  std::vector<int> failed;
  PlanRequest request;
  Stripe stripe;
  PartContext context;
};

void PlanOneRepair(benchmark::State& state, const std::string& scheme, Known known) {
  Asked asked(scheme, static_cast<int>(state.range(0)), static_cast<int>(state.range(1)),
              static_cast<int>(state.range(2)), known);
  for (auto _ : state) {
    asked.request.equation = asked.code->Equation(asked.failed, asked.request.survivors).value();
    const RepairPlan plan = ChoosePlan(asked.request).value();
    benchmark::DoNotOptimize(EstimateCost(plan, asked.request.cluster));
    const auto parts = BuildParts(plan, asked.context);
    ECPIPE_CHECK(parts.ok());
    benchmark::DoNotOptimize(parts->size());
  }
}

void Register(const std::string& scheme, const std::string& suffix, Known known) {
  auto* benchmark = benchmark::RegisterBenchmark(
      ("PlanOneRepair/" + scheme + suffix).c_str(),
      [scheme, known](benchmark::State& state) { PlanOneRepair(state, scheme, known); });
  benchmark->ArgNames({"n", "k", "failed"});
  benchmark->Args({6, 4, 1})
      ->Args({9, 6, 1})
      ->Args({14, 10, 1})
      ->Args({16, 12, 1})
      ->Args({60, 40, 1});
  benchmark->Args({14, 10, 2})->Args({14, 10, 4})->Args({100, 80, 1});
}

void RegisterAll() {
  std::vector<std::string> schemes = SchemesForLostBlocks();
  schemes.push_back("auto");
  for (const std::string& scheme : schemes) Register(scheme, "", Known::kNothing);
  for (const char* scheme : {"rp-weighted", "rp-cyclic", "rp-all", "rp-flow", "auto"}) {
    Register(scheme, "/links", Known::kLinks);
  }
  for (const char* scheme : {"rp-rack", "auto"}) Register(scheme, "/racks", Known::kRacks);
}

// The weighted path alone, over random speeds. `gap`: how far the bound is above what was found.
void WidestPathOfRandomLinks(benchmark::State& state) {
  const int candidates = static_cast<int>(state.range(0));
  const int length = static_cast<int>(state.range(1));
  std::mt19937_64 random(1);
  std::vector<LinkSpeeds> inputs;
  for (int i = 0; i < 50; ++i) {
    LinkSpeeds& speeds = inputs.emplace_back(candidates);
    for (int from = 0; from < candidates; ++from) {
      for (int to = 0; to <= candidates; ++to) {
        speeds.Set(from, to, static_cast<double>(random() % 1'000'000));
      }
    }
  }
  size_t next = 0;
  double steps = 0;
  double gap = 0;
  for (auto _ : state) {
    const WidestPath path = FindWidestPath(inputs[next++ % inputs.size()], length);
    steps += static_cast<double>(path.steps);
    gap += path.bound / path.speed - 1;
  }
  const auto average = benchmark::Counter::kAvgIterations;
  state.counters["steps"] = benchmark::Counter(steps, average);
  state.counters["gap"] = benchmark::Counter(gap, average);
}
BENCHMARK(WidestPathOfRandomLinks)->Args({13, 10})->Args({15, 12})->Args({39, 30})->Args({99, 80});

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  ecpipe::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
