// SPDX-License-Identifier: Apache-2.0
// Made-up stripes for benchmarks of the catalog, the same on every machine.
#pragma once

#include <cstdint>
#include <string>

#include "coordinator/store/catalog.h"

namespace ecpipe {

struct StripeMaker {
  // "hdfs" ids count up, as a NameNode's do; "random" ones share nothing, the worst case for size
  // and locality.
  enum class Ids { kHdfs, kRandom };
  Ids ids = Ids::kHdfs;
  int n = 14;           // blocks a stripe
  int nodes = 1000;     // node-0, node-1, ...; at least n, and 2
  bool sha256 = false;  // whether blocks have made-up SHA-256

  std::string StripeId(int64_t stripe) const;
  std::string BlockId(int64_t stripe, int index) const;
  Stripe Make(int64_t stripe) const;
};

}  // namespace ecpipe
