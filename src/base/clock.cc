// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include "base/simulator.h"

namespace ecpipe {
namespace {

class SystemClock : public Clock {
 public:
  TimePoint Now() const override {
    if (Simulator* simulator = Simulator::Installed()) return simulator->Now();
    return std::chrono::steady_clock::now();
  }
  int64_t UnixMillis() const override {
    if (Simulator* simulator = Simulator::Installed()) {
      const Duration since = simulator->Now().time_since_epoch();
      return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

}  // namespace ecpipe
