// SPDX-License-Identifier: Apache-2.0
// What planning one repair costs: from survivors to the parts that are handed out.
#include <benchmark/benchmark.h>

#include <numeric>
#include <random>

#include "common/check.h"
#include "coordinator/part_builder.h"
#include "coordinator/path_search.h"
#include "coordinator/plan_cost.h"

namespace ecpipe {
namespace {

void PlanOneRepair(benchmark::State& state, const std::string& scheme, bool links_known) {
  const int n = static_cast<int>(state.range(0));
  const int k = static_cast<int>(state.range(1));
  const auto code = *CreateErasureCode("rs(" + std::to_string(n) + "," + std::to_string(k) + ")");
  const int failed[] = {0};
  std::vector<int> survivors(static_cast<size_t>(n) - 1);
  std::iota(survivors.begin(), survivors.end(), 1);
  PlanRequest request;
  request.scheme = scheme;
  request.grid = {0, 64u << 20, 32u << 10};
  request.requestors = {"requestor"};
  if (links_known) {
    std::mt19937_64 random(1);
    LinkTable links;
    for (const std::string& from : request.block_nodes) {
      for (const std::string& to : request.block_nodes) {
        links[{from, to}] = 1e6 + static_cast<double>(random() % 100'000'000);
      }
      links[{from, request.requestors[0]}] = 1e6 + static_cast<double>(random() % 100'000'000);
    }
    request.cluster.links = std::make_shared<LinkTable>(std::move(links));
  }
  request.code = code;
  request.survivors = survivors;
  PartContext context;
  context.new_token = [] { return EdgeToken{}; };
  Stripe stripe;
  for (int i = 0; i < n; ++i) {
    const std::string node = "node-" + std::to_string(i);
    request.block_nodes.push_back(node);
    context.addresses[node] = "127.0.0.1:7712";
    stripe.blocks.push_back({"file-s00000-b" + std::to_string(i), node});
  }
  stripe.block_bytes = 64u << 20;
  context.stripe = &stripe;
  for (auto _ : state) {
    request.equation = *code->Equation(failed, survivors);
    const RepairPlan plan = *ChoosePlan(request);
    benchmark::DoNotOptimize(EstimateCost(plan, request.cluster));
    const auto parts = BuildParts(plan, context);
    ECPIPE_CHECK(parts.ok());
    benchmark::DoNotOptimize(parts->size());
  }
}

BENCHMARK_CAPTURE(PlanOneRepair, rp, "rp", false)->Args({14, 10})->Args({6, 4})->Args({100, 80});
BENCHMARK_CAPTURE(PlanOneRepair, ppr, "ppr", false)->Args({14, 10});
BENCHMARK_CAPTURE(PlanOneRepair, conventional, "conventional", false)->Args({14, 10});
BENCHMARK_CAPTURE(PlanOneRepair, automatic, "auto", false)->Args({14, 10});
BENCHMARK_CAPTURE(PlanOneRepair, weighted, "rp-weighted", true)->Args({14, 10});
BENCHMARK_CAPTURE(PlanOneRepair, automatic_with_links, "auto", true)->Args({14, 10});

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

BENCHMARK_MAIN();
