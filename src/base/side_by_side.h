// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <vector>

#include "base/thread.h"

namespace ecpipe {

// Calls `work` with each number below `count`, on the calling thread and others, at most `at_once`
// in all, and returns when all have returned. For work that waits nearly all of its time. Where the
// system has fewer threads, fewer calls run at once. What a call throws is thrown here, when all
// threads have ended; calls that have not begun by then are left out.
inline void SideBySide(size_t count, size_t at_once, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::exception_ptr thrown;
  std::atomic<bool> has_thrown = false;
  const auto some = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      if (!has_thrown.exchange(true)) thrown = std::current_exception();
    }
  };
  std::vector<Thread> threads;
  threads.reserve(std::min(count, at_once));
  while (threads.size() + 1 < std::min(count, at_once)) {
    absl::StatusOr<Thread> thread = Thread::Start(some);
    if (!thread.ok()) break;
    threads.push_back(*std::move(thread));
  }
  some();
  for (Thread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace ecpipe
