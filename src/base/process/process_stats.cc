// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_stats.h"

#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace ecpipe {

double ProcessCpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t PeakResidentBytes() {
  // Not ru_maxrss: that one also remembers the parent from which the process was forked.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace ecpipe
