// SPDX-License-Identifier: Apache-2.0
// What planning one repair costs: from survivors to the parts that are handed out.
#include <benchmark/benchmark.h>

#include <numeric>

#include "common/check.h"
#include "coordinator/part_builder.h"
#include "coordinator/plan_cost.h"

namespace ecpipe {
namespace {

void PlanOneRepair(benchmark::State& state, const std::string& scheme) {
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
    const RepairPlan plan = *ChoosePlan(request, 125e6);
    benchmark::DoNotOptimize(EstimateCost(plan, request.nodes, 125e6));
    const auto parts = BuildParts(plan, context);
    ECPIPE_CHECK(parts.ok());
    benchmark::DoNotOptimize(parts->size());
  }
}

BENCHMARK_CAPTURE(PlanOneRepair, rp, "rp")->Args({14, 10})->Args({6, 4})->Args({100, 80});
BENCHMARK_CAPTURE(PlanOneRepair, ppr, "ppr")->Args({14, 10});
BENCHMARK_CAPTURE(PlanOneRepair, conventional, "conventional")->Args({14, 10});
BENCHMARK_CAPTURE(PlanOneRepair, automatic, "auto")->Args({14, 10});

}  // namespace
}  // namespace ecpipe

BENCHMARK_MAIN();
