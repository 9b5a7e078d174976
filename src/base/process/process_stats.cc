// SPDX-License-Identifier: Apache-2.0
#include "base/process/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

namespace ecpipe {
namespace {

uint64_t BytesOfStatus(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(field)) continue;
    return std::strtoull(line.c_str() + std::strlen(field), nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace

double ProcessCpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Not ru_maxrss: that one also remembers the parent from which the process was forked.
uint64_t PeakResidentBytes() { return BytesOfStatus("VmHWM:"); }
uint64_t ResidentBytes() { return BytesOfStatus("VmRSS:"); }

double ProcessStartUnixSeconds() {
  // Field 22 of stat, in clock ticks since the machine's start; the name before may have spaces.
  std::ifstream stat("/proc/self/stat");
  std::string line;
  std::getline(stat, line);
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  std::ifstream uptime("/proc/uptime");
  double up = 0;
  uptime >> up;
  const double since_boot =
      std::strtod(field.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(std::time(nullptr)) - up + since_boot;
}

uint64_t OpenDescriptors() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return DescriptorLimit();  // there is none left to list them with
  uint64_t count = 0;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    ++count;
  }
  return count;
}

uint64_t DescriptorLimit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace ecpipe
