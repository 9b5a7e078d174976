// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>

#include <cstdint>

#include "base/simulator.h"
#include "base/unique_fd.h"

namespace ecpipe {

// Lets any thread end another thread's poll(). Signals collapse: one Drain takes all of them.
// Whoever makes one asks valid() before it waits: a process may have too many open files for it.
class Wakeup {
 public:
  Wakeup() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  void Signal() {
    const uint64_t one = 1;
    // EAGAIN means that the counter is full, so the sleeper is already due to wake.
    [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
    if (Simulator* simulator = Simulator::Installed()) simulator->Signalled(fd_.get());
  }
  void Drain() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(fd_.get(), &count, sizeof count);
  }

 private:
  UniqueFd fd_;
};

}  // namespace ecpipe
