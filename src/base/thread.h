// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <exception>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "base/fault_points.h"
#include "base/simulator.h"
#include "base/status.h"

namespace ecpipe {

// A std::thread that a simulation can run. As there: joined or detached before it is destroyed.
class Thread {
 public:
  Thread() = default;
  // Throws where the system has no thread: only for a thread without which the process is nothing,
  // and that is started with it.
  explicit Thread(std::function<void()> body) {
    if (!FaultPoint("thread.start").ok()) {
      throw std::system_error(EAGAIN, std::generic_category(), "fault point thread.start");
    }
    if (Simulator* simulator = Simulator::Installed()) {
      simulated_ = simulator->StartThread(std::move(body));
    } else {
      thread_ = std::thread(std::move(body));
    }
  }
  // The same for all other threads. RESOURCE_EXHAUSTED: the system has none, or no memory for one.
  static absl::StatusOr<Thread> Start(std::function<void()> body) {
    try {
      return Thread(std::move(body));
    } catch (const std::exception& error) {
      return NoneLeft(error.what());
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
  static absl::Status NoneLeft(const std::string& reason) {
    return OwnShortage(absl::ResourceExhaustedError("cannot start a thread: " + reason));
  }

  std::thread thread_;
  uint64_t simulated_ = 0;
};

}  // namespace ecpipe
