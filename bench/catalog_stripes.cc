// SPDX-License-Identifier: Apache-2.0
#include "catalog_stripes.h"

#include <cstdio>
#include <numeric>

namespace ecpipe {
namespace {

// Any number gives the same bits on every machine (SplitMix64).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::string RandomId(uint64_t number) {
  const uint64_t a = Mix(number);
  const uint64_t b = Mix(~number);
  char text[64];
  std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(a >> 32),
                static_cast<unsigned>(a >> 16 & 0xffff), static_cast<unsigned>(a & 0xffff),
                static_cast<unsigned>(b >> 48), static_cast<unsigned long long>(b & (~0ull >> 16)));
  return text;
}

std::string FakeSha256(int64_t number) {
  std::string digits;
  for (uint64_t part = 0; part < 4; ++part) {
    char text[17];
    std::snprintf(text, sizeof text, "%016llx",
                  static_cast<unsigned long long>(Mix(static_cast<uint64_t>(number) * 4 + part)));
    digits += text;
  }
  return digits;
}

}  // namespace

std::string StripeMaker::StripeId(int64_t stripe) const {
  if (ids == Ids::kRandom) return RandomId(static_cast<uint64_t>(stripe) << 8 | 0xff);
  return "blk_" + std::to_string(INT64_MIN + 16 * (stripe + 1));
}

std::string StripeMaker::BlockId(int64_t stripe, int index) const {
  if (ids == Ids::kRandom) return RandomId(static_cast<uint64_t>(stripe) << 8 | index);
  return "blk_" + std::to_string(INT64_MIN + 16 * (stripe + 1) + index);
}

Stripe StripeMaker::Make(int64_t number) const {
  Stripe stripe{StripeId(number), "rs-cauchy(14,10)", 64u << 20, {}};
  const auto node_count = static_cast<uint64_t>(nodes);
  const uint64_t first_node = Mix(static_cast<uint64_t>(number));
  // Another one for each stripe, so that a node shares stripes with all others.
  uint64_t step = 1 + Mix(~static_cast<uint64_t>(number)) % (node_count - 1);
  while (node_count / std::gcd(step, node_count) < static_cast<uint64_t>(n)) {
    step = step % (node_count - 1) + 1;
  }
  for (int i = 0; i < n; ++i) {
    const uint64_t node = (first_node + static_cast<uint64_t>(i) * step) % node_count;
    stripe.blocks.push_back({BlockId(number, i), "node-" + std::to_string(node)});
    if (sha256) stripe.blocks.back().sha256 = FakeSha256(number * n + i);
  }
  return stripe;
}

}  // namespace ecpipe
