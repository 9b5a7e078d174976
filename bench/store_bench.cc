// SPDX-License-Identifier: Apache-2.0
// What it costs to check blocks as they are read: slices of a block in the page cache, read as a
// helper does, with a checksum file beside it and without.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "helper/store/plain/plain_store.h"

namespace ecpipe {
namespace {

constexpr uint64_t kBlockBytes = 64u << 20;

class Scratch {
 public:
  Scratch() { ECPIPE_CHECK(::mkdtemp(path_.data()) != nullptr); }
  ~Scratch() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / "store_bench_XXXXXX";
};

void ReadSlices(benchmark::State& state) {
  const bool checked = state.range(0) != 0;
  const auto slice_bytes = static_cast<size_t>(state.range(1));
  const auto first = static_cast<uint64_t>(state.range(2));
  const Scratch scratch;
  const auto store =
      OpenPlainStore({scratch.path()}, checked ? StoredChecksums::kWrite : StoredChecksums::kOmit)
          .value();
  std::vector<uint8_t> slice(slice_bytes, 0xa5);
  auto writer = store->Create("block", kBlockBytes).value();
  for (uint64_t at = 0; at < kBlockBytes; at += slice_bytes) {
    const uint64_t step = std::min<uint64_t>(slice_bytes, kBlockBytes - at);
    ECPIPE_CHECK(writer->WriteAt(at, std::span(slice).first(step)).ok());
  }
  ECPIPE_CHECK(writer->Commit().ok());
  const auto block = store->Open("block").value();
  const auto read_slices = [&] {
    for (uint64_t at = first; at + slice_bytes <= kBlockBytes; at += slice_bytes) {
      ECPIPE_CHECK(block->ReadAt(at, slice).ok());
    }
  };
  read_slices();  // the store drops what it has written from the page cache
  for (auto _ : state) read_slices();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kBlockBytes));
}

BENCHMARK(ReadSlices)
    ->ArgNames({"checked", "slice", "first"})
    ->ArgsProduct({{0, 1}, {4096, 32768, 262144}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace ecpipe

BENCHMARK_MAIN();
