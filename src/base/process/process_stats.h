// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ecpipe {

// User and system CPU time of this process so far.
double ProcessCpuSeconds();

// The largest resident set that this process has had, in bytes; 0 if the system does not say.
uint64_t PeakResidentBytes();
// The resident set now, in bytes; 0 if the system does not say.
uint64_t ResidentBytes();

// Unix time at which this process started.
double ProcessStartUnixSeconds();

// File descriptors that are open, and the most that may be.
uint64_t OpenDescriptors();
uint64_t DescriptorLimit();

}  // namespace ecpipe
