// SPDX-License-Identifier: Apache-2.0
// What the kernel costs beside ISA-L itself, by size and alignment, and what an equation costs:
//
//   codec_bench [--benchmark_filter=...]
//
// Our kernel and bare ISA-L take turns on the same buffers, a batch of calls each. `of_isal` is our
// speed as a share of ISA-L's: the median over the pairs of batches. Times and bytes per second are
// those of our side, in CPU time.
#include <benchmark/benchmark.h>
#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes/aligned_buffer.h"
#include "base/check.h"
#include "codec/erasure_code.h"
#include "codec/kernel.h"

namespace ecpipe {
namespace {

constexpr uint8_t kCoefficients[] = {0x8e, 0x47, 0xa7, 0x7a};
// Bytes of source that one batch reads: tens of microseconds, over which a clock can be read.
constexpr size_t kBatchBytes = 256u << 10;

// A source and some rows at a distance of `misalignment` from page boundaries.
struct Buffers {
  Buffers(size_t row_count, size_t bytes, size_t misalignment) {
    for (size_t i = 0; i <= row_count; ++i) {
      storage.emplace_back(bytes + misalignment);
      std::memset(storage.back().data(), static_cast<int>(i + 1), bytes + misalignment);
      if (i > 0) rows.push_back(storage.back().data() + misalignment);
    }
    source = storage[0].data() + misalignment;
  }

  std::vector<AlignedBuffer> storage;
  uint8_t* source;
  std::vector<uint8_t*> rows;
};

// The arguments of a benchmark: rows, bytes, misalignment.
struct Shape {
  explicit Shape(const benchmark::State& state)
      : rows(static_cast<size_t>(state.range(0))),
        bytes(static_cast<size_t>(state.range(1))),
        misalignment(static_cast<size_t>(state.range(2))) {}
  size_t rows;
  size_t bytes;
  size_t misalignment;
};

// CPU time: what others do on the machine meanwhile is not in it.
double ThreadSeconds() {
  timespec now{};
  ECPIPE_CHECK(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Call>
double SecondsOf(size_t calls, const Call& call) {
  const double begin = ThreadSeconds();
  for (size_t i = 0; i < calls; ++i) {
    call();
    benchmark::ClobberMemory();
  }
  return ThreadSeconds() - begin;
}

// Each call of `ours` and of `bare` does the same for `bytes` of source.
template <typename Ours, typename Bare>
void TakeTurns(benchmark::State& state, size_t bytes, const Ours& ours, const Bare& bare) {
  const size_t calls = std::max<size_t>(1, kBatchBytes / bytes);
  std::vector<double> shares;
  bool ours_first = true;
  for (auto _ : state) {
    double our_seconds = 0;
    if (ours_first) our_seconds = SecondsOf(calls, ours);
    const double bare_seconds = SecondsOf(calls, bare);
    if (!ours_first) our_seconds = SecondsOf(calls, ours);
    ours_first = !ours_first;
    state.SetIterationTime(our_seconds);
    shares.push_back(bare_seconds / our_seconds);
  }
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>(shares.size() / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  state.counters["of_isal"] = *middle;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(calls * bytes));
}

// Aligned, as ISA-L likes them best.
AlignedBuffer IsalTables(size_t rows) {
  std::vector<uint8_t> coefficients(kCoefficients, kCoefficients + rows);
  AlignedBuffer tables(32 * rows);
  ec_init_tables(1, static_cast<int>(rows), coefficients.data(), tables.data());
  return tables;
}

void MultiplyAdd(benchmark::State& state) {
  const Shape shape(state);
  Buffers buffers(shape.rows, shape.bytes, shape.misalignment);
  const CoefficientColumn column({kCoefficients, shape.rows});
  AlignedBuffer tables = IsalTables(shape.rows);
  TakeTurns(
      state, shape.bytes, [&] { column.MultiplyAdd(buffers.rows, buffers.source, shape.bytes); },
      [&] {
        ec_encode_data_update(static_cast<int>(shape.bytes), 1, static_cast<int>(shape.rows), 0,
                              tables.data(), buffers.source, buffers.rows.data());
      });
}

void Multiply(benchmark::State& state) {
  const Shape shape(state);
  Buffers buffers(shape.rows, shape.bytes, shape.misalignment);
  const CoefficientColumn column({kCoefficients, shape.rows});
  AlignedBuffer tables = IsalTables(shape.rows);
  TakeTurns(
      state, shape.bytes, [&] { column.Multiply(buffers.rows, buffers.source, shape.bytes); },
      [&] {
        ec_encode_data(static_cast<int>(shape.bytes), 1, static_cast<int>(shape.rows),
                       tables.data(), &buffers.source, buffers.rows.data());
      });
}

// 1: no vector is aligned; 16: those of SSE are; 32: those of AVX2 are, cache lines are not.
void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "bytes", "misaligned"})->UseManualTime();
  for (const int64_t rows : {1, 2, 4}) {
    for (const int64_t bytes : {512, 4 << 10, 32 << 10, 256 << 10, 1 << 20}) {
      for (const int64_t misaligned : {0, 1, 16, 32}) benchmark->Args({rows, bytes, misaligned});
    }
  }
}
BENCHMARK(MultiplyAdd)->Apply(Shapes);

void FewShapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "bytes", "misaligned"})->UseManualTime();
  for (const int64_t rows : {1, 4}) {
    for (const int64_t bytes : {4 << 10, 32 << 10, 1 << 20}) {
      for (const int64_t misaligned : {0, 1}) benchmark->Args({rows, bytes, misaligned});
    }
  }
}
BENCHMARK(Multiply)->Apply(FewShapes);

// ISA-L's own takes aligned buffers only.
void XorBytes(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  Buffers buffers(1, bytes, 0);
  void* vectors[] = {buffers.rows[0], buffers.source, buffers.rows[0]};
  TakeTurns(
      state, bytes, [&] { Xor(buffers.rows[0], buffers.source, bytes); },
      [&] { ECPIPE_CHECK(xor_gen(3, static_cast<int>(bytes), vectors) == 0); });
}
BENCHMARK(XorBytes)
    ->ArgName("bytes")
    ->Arg(512)
    ->Arg(4 << 10)
    ->Arg(32 << 10)
    ->Arg(1 << 20)
    ->UseManualTime();

// A hop makes its tables once a repair.
void MakeColumn(benchmark::State& state) {
  for (auto _ : state) {
    CoefficientColumn column({kCoefficients, static_cast<size_t>(state.range(0))});
    benchmark::DoNotOptimize(column);
  }
}
BENCHMARK(MakeColumn)->ArgName("rows")->Arg(1)->Arg(4);

// Repairs the first `failed` blocks from all others.
void Equation(benchmark::State& state, const std::string& name) {
  const auto code = CreateErasureCode(name).value();
  const int failed_count = static_cast<int>(state.range(0));
  std::vector<int> failed;
  std::vector<int> survivors;
  for (int i = 0; i < code->n(); ++i) (i < failed_count ? failed : survivors).push_back(i);
  for (auto _ : state) {
    auto equation = code->Equation(failed, survivors);
    benchmark::DoNotOptimize(equation);
  }
}
BENCHMARK_CAPTURE(Equation, rs_14_10, "rs(14,10)")->ArgName("failed")->Arg(1)->Arg(4);
BENCHMARK_CAPTURE(Equation, rs_100_80, "rs(100,80)")->ArgName("failed")->Arg(1)->Arg(20);
BENCHMARK_CAPTURE(Equation, rs_255_223, "rs(255,223)")->ArgName("failed")->Arg(1)->Arg(32);

void Create(benchmark::State& state, const std::string& name) {
  for (auto _ : state) {
    auto code = CreateErasureCode(name);
    benchmark::DoNotOptimize(code);
  }
}
BENCHMARK_CAPTURE(Create, rs_14_10, "rs(14,10)");
BENCHMARK_CAPTURE(Create, vandermonde_9_6, "rs-vandermonde(9,6)");
BENCHMARK_CAPTURE(Create, vandermonde_255_252, "rs-vandermonde(255,252)");

}  // namespace
}  // namespace ecpipe

BENCHMARK_MAIN();
