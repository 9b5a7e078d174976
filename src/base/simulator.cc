// SPDX-License-Identifier: Apache-2.0
#include "base/simulator.h"

#include <algorithm>

namespace ecpipe {

int Poll(std::span<pollfd> fds, Duration timeout) {
  if (Simulator* simulator = Simulator::Installed()) return simulator->Poll(fds, timeout);
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(std::max(timeout, Duration(0)));
  return ::poll(fds.data(), fds.size(), static_cast<int>(millis.count()));
}

}  // namespace ecpipe
