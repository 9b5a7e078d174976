// SPDX-License-Identifier: Apache-2.0
// ECPIPE_CHECK guards our own invariants. It is always on: a repair that goes on after a broken
// invariant could hand out wrong bytes, so the process ends instead.
#pragma once

#include <string>

namespace ecpipe::internal {
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);
}  // namespace ecpipe::internal

#define ECPIPE_CHECK(condition)                                                   \
  (__builtin_expect(!!(condition), 1)                                             \
       ? static_cast<void>(0)                                                     \
       : ::ecpipe::internal::CheckFailed(__FILE__, __LINE__, #condition))
