// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace ecpipe {
namespace {

std::atomic<bool> throw_on_broken_invariants{false};

}  // namespace

void ThrowOnBrokenInvariants() { throw_on_broken_invariants = true; }

namespace internal {

void CheckFailed(const char* file, int line, const char* condition) {
  if (throw_on_broken_invariants) {
    throw std::logic_error(std::string(file) + ":" + std::to_string(line) +
                           ": broken invariant: " + condition);
  }
  std::fprintf(stderr, "%s:%d: broken invariant: %s\n", file, line, condition);
  std::abort();
}

}  // namespace internal
}  // namespace ecpipe
