// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/thread.h"

namespace ecpipe {

// Calls `work` with each number below `count`, on the calling thread and others, at most `at_once`
// in all, and returns when all have returned. For work that waits nearly all of its time.
inline void SideBySide(size_t count, size_t at_once, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto some = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<Thread> threads;
  while (threads.size() + 1 < std::min(count, at_once)) threads.emplace_back(some);
  some();
  for (Thread& thread : threads) thread.join();
}

}  // namespace ecpipe
