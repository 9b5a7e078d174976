// SPDX-License-Identifier: Apache-2.0
// What is wrong with a deployment, and what to do about it. Pure.
#pragma once

#include <string>
#include <vector>

#include "requestor/doctor/facts.h"

namespace ecpipe {

// The worst first.
enum class Severity { kError, kWarning, kNotChecked, kOk };
// "error", "warning", "not checked", "ok".
const char* SeverityName(Severity severity);

struct Finding {
  Severity severity = Severity::kOk;
  std::string check;   // "versions", "ports", ...
  std::string where;   // a node, "coordinator" or "this command"; empty: the cluster
  std::string what;    // a sentence
  std::string advice;  // what to do; empty where all is well
};

// Of each check at least one, sorted: the worst first, and then in the order of the checks.
std::vector<Finding> Judge(const DoctorFacts& facts);

// For people: a line a finding, and below a trouble what to do.
std::string FindingsText(const std::vector<Finding>& findings, bool colours);

// The limits of the verdicts.
inline constexpr double kMostClockSeconds = 1;  // what logs can still be read side by side with
inline constexpr int kWarnDays = 30;            // of a certificate, as daemons log it
inline constexpr int kErrorDays = 7;
inline constexpr uint64_t kFewDescriptors = 4096;
inline constexpr uint64_t kUsualDescriptors = 65536;  // what the units of deploy/systemd allow
inline constexpr double kMuchOfDescriptors = 0.5;     // of the limit
inline constexpr double kMostOfDescriptors = 0.9;
inline constexpr double kLittleRoom = 0.10;          // of a disk, free
inline constexpr uint64_t kNoRoomBytes = 256 << 20;  // less than an HDFS block with its checksums

}  // namespace ecpipe
