// SPDX-License-Identifier: Apache-2.0
// What the kernel costs beside ISA-L itself, and what an equation costs:
//
//   codec_bench [--benchmark_filter=...]
//
// Both sides run on the same kind of buffers in one process. On a machine with other work, compare
// the best of many interleaved repetitions:
//   --benchmark_repetitions=15 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>
#include <isa-l/erasure_code.h>

#include <cstring>
#include <string>
#include <vector>

#include "codec/erasure_code.h"
#include "codec/kernel.h"
#include "common/aligned_buffer.h"

namespace ecpipe {
namespace {

constexpr uint8_t kCoefficients[] = {0x8e, 0x47, 0xa7, 0x7a};

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

void SetBytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void MultiplyAddOurs(benchmark::State& state) {
  const Shape shape(state);
  Buffers buffers(shape.rows, shape.bytes, shape.misalignment);
  const CoefficientColumn column({kCoefficients, shape.rows});
  for (auto _ : state) {
    column.MultiplyAdd(buffers.rows, buffers.source, shape.bytes);
    benchmark::ClobberMemory();
  }
  SetBytes(state, shape.bytes);
}

void MultiplyAddIsal(benchmark::State& state) {
  const Shape shape(state);
  Buffers buffers(shape.rows, shape.bytes, shape.misalignment);
  std::vector<uint8_t> coefficients(kCoefficients, kCoefficients + shape.rows);
  std::vector<uint8_t> tables(32 * shape.rows);
  ec_init_tables(1, static_cast<int>(shape.rows), coefficients.data(), tables.data());
  for (auto _ : state) {
    ec_encode_data_update(static_cast<int>(shape.bytes), 1, static_cast<int>(shape.rows), 0,
                          tables.data(), buffers.source, buffers.rows.data());
    benchmark::ClobberMemory();
  }
  SetBytes(state, shape.bytes);
}

void Shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "bytes", "misaligned"});
  for (const int64_t rows : {1, 2, 4}) {
    for (const int64_t bytes : {4 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20}) {
      for (const int64_t misalignment : {0, 5}) benchmark->Args({rows, bytes, misalignment});
    }
  }
}
BENCHMARK(MultiplyAddOurs)->Apply(Shapes);
BENCHMARK(MultiplyAddIsal)->Apply(Shapes);

void XorBytes(benchmark::State& state) {
  Buffers buffers(1, static_cast<size_t>(state.range(0)), 0);
  for (auto _ : state) {
    Xor(buffers.rows[0], buffers.source, static_cast<size_t>(state.range(0)));
    benchmark::ClobberMemory();
  }
  SetBytes(state, static_cast<size_t>(state.range(0)));
}
BENCHMARK(XorBytes)->ArgName("bytes")->Arg(4 << 10)->Arg(32 << 10)->Arg(1 << 20);

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
