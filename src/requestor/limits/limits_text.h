// SPDX-License-Identifier: Apache-2.0
// Limits on repairs in words.
#pragma once

#include <string>

#include "model/recovery.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// Rates are shown in Mb/s; everything else counts bytes.
inline double Mbit(double bytes_per_second) { return bytes_per_second * 8 / 1e6; }
inline double BytesPerSecond(double mbit) { return mbit * 1e6 / 8; }

// Far beyond any link.
inline constexpr double kMostMbit = 1e9;

// In Mb/s; "none" for 0.
std::string RateText(double bytes_per_second);

// "repair Mb/s none (as configured), repairs at once 256 (set)".
std::string ClusterLimitsText(const ClusterLimitsView& limits);

// The same, and how many of the recovery's repairs a node takes part in, with whose limit that is;
// without that if the coordinator is too old to say it.
std::string RecoveryLimitsText(const ClusterLimitsView& limits, const RecoveryView& recovery);

}  // namespace ecpipe
