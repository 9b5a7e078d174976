// SPDX-License-Identifier: Apache-2.0
// What a frame costs beside moving its bytes: what a sender does before the first byte leaves, and
// a receiver before it uses one. Both are one CRC32C over the payload and 40 bytes of header.
#include <benchmark/benchmark.h>

#include <array>
#include <cstring>

#include "base/bytes/aligned_buffer.h"
#include "base/bytes/crc32c.h"
#include "base/check.h"
#include "net/frame.h"

namespace ecpipe {
namespace {

// A payload at a distance of `misalignment` from a page boundary.
class Payload {
 public:
  Payload(size_t bytes, size_t misalignment)
      : storage_(bytes + misalignment), span_(storage_.span().subspan(misalignment)) {
    std::memset(storage_.data(), 0x5a, storage_.size());
  }
  explicit Payload(const benchmark::State& state)
      : Payload(static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1))) {}

  std::span<const uint8_t> span() const { return span_; }

 private:
  AlignedBuffer storage_;
  std::span<uint8_t> span_;
};

FrameHeader HeaderOf(std::span<const uint8_t> payload) {
  FrameHeader header;
  header.repair_id = 0x1122334455667788;
  header.attempt = 1;
  header.lane = 2;
  header.slice_index = 3;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  return header;
}

void SetBytes(benchmark::State& state, const Payload& payload) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(payload.span().size()));
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"bytes", "misaligned"});
  for (const int64_t bytes : {64, 4 << 10, 32 << 10, 256 << 10, 1 << 20}) {
    for (const int64_t misaligned : {0, 1}) benchmark->Args({bytes, misaligned});
  }
}

void Checksum(benchmark::State& state) {
  const Payload payload(state);
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(payload.span()));
  SetBytes(state, payload);
}
BENCHMARK(Checksum)->Apply(Sizes);

void Encode(benchmark::State& state) {
  const Payload payload(state);
  FrameHeader header = HeaderOf(payload.span());
  std::array<uint8_t, kFrameHeaderBytes> bytes{};
  for (auto _ : state) {
    ++header.slice_index;
    header.payload_crc32c = Crc32c(payload.span());
    EncodeFrameHeader(header, bytes);
    benchmark::DoNotOptimize(bytes);
  }
  SetBytes(state, payload);
}
BENCHMARK(Encode)->Apply(Sizes);

void Decode(benchmark::State& state) {
  const Payload payload(state);
  FrameHeader expected = HeaderOf(payload.span());
  expected.payload_crc32c = Crc32c(payload.span());
  std::array<uint8_t, kFrameHeaderBytes> bytes{};
  EncodeFrameHeader(expected, bytes);
  for (auto _ : state) {
    const absl::StatusOr<FrameHeader> header = DecodeFrameHeader(bytes);
    ECPIPE_CHECK(header.ok());
    ECPIPE_CHECK(CheckExpected(*header, expected).ok());
    ECPIPE_CHECK(CheckPayload(*header, payload.span()).ok());
  }
  SetBytes(state, payload);
}
BENCHMARK(Decode)->Apply(Sizes);

// Once a stream.
void HelloBothWays(benchmark::State& state) {
  Hello hello;
  hello.edge = {0x1122334455667788, 1, 2, 3, 4};
  std::array<uint8_t, kHelloBytes> bytes{};
  for (auto _ : state) {
    EncodeHello(hello, bytes);
    benchmark::DoNotOptimize(bytes);
    ECPIPE_CHECK(DecodeHello(bytes).ok());
  }
}
BENCHMARK(HelloBothWays);

}  // namespace
}  // namespace ecpipe

BENCHMARK_MAIN();
