// SPDX-License-Identifier: Apache-2.0
// ECPIPE_CHECK guards our own invariants. It is always on: a repair that goes on after a broken
// invariant could hand out wrong bytes, so the process ends instead, or the call in a library.
#pragma once

#include <string>

namespace ecpipe::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace ecpipe::internal

namespace ecpipe {
// For a library in another's process: from now on a broken invariant throws std::logic_error, which
// ends the call that found it. Any thread.
void ThrowOnBrokenInvariants();
}  // namespace ecpipe

#define ECPIPE_CHECK(condition)                                                   \
  (__builtin_expect(!!(condition), 1)                                             \
       ? static_cast<void>(0)                                                     \
       : ::ecpipe::internal::CheckFailed(__FILE__, __LINE__, #condition))
