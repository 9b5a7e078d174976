// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "base/simulator.h"

namespace ecpipe {

// A std::thread that a simulation can run. As there: joined or detached before it is destroyed.
class Thread {
 public:
  Thread() = default;
  explicit Thread(std::function<void()> body) {
    if (Simulator* simulator = Simulator::Installed()) {
      simulated_ = simulator->StartThread(std::move(body));
    } else {
      thread_ = std::thread(std::move(body));
    }
  }
  Thread(Thread&& other) noexcept
      : thread_(std::move(other.thread_)), simulated_(std::exchange(other.simulated_, 0)) {}
  Thread& operator=(Thread&& other) noexcept {
    thread_ = std::move(other.thread_);
    simulated_ = std::exchange(other.simulated_, 0);
    return *this;
  }

  bool joinable() const { return simulated_ != 0 || thread_.joinable(); }
  void join() {
    if (simulated_ != 0) {
      Simulator::Installed()->JoinThread(std::exchange(simulated_, 0));
    } else {
      thread_.join();
    }
  }
  void detach() {
    if (std::exchange(simulated_, 0) == 0) thread_.detach();
  }

 private:
  std::thread thread_;
  uint64_t simulated_ = 0;
};

}  // namespace ecpipe
