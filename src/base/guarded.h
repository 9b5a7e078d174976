// SPDX-License-Identifier: Apache-2.0
// Keeps exceptions, which only the standard library throws here, from ending the process: where a
// thread of ours begins, and where other programs call us.
#pragma once

#include <exception>

#include "absl/status/status.h"

namespace ecpipe {

// In a handler: what the exception says. RESOURCE_EXHAUSTED for memory (without a message) and
// threads, else INTERNAL. Does not throw.
absl::Status StatusOfException();

// Returns what `call` returns, a Status or StatusOr, or what it throws.
template <typename Call>
auto Guarded(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception&) {
    return StatusOfException();
  }
}

}  // namespace ecpipe
