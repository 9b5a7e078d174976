// SPDX-License-Identifier: Apache-2.0
// Logs are events with keys, one line each on standard error:
//   2026-01-02T03:04:05.678Z INFO repair.begin repair=00c0ffee00c0ffee scheme=rp k=10
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace ecpipe {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// A key and its value; values with spaces, quotes or control characters are quoted in the line.
using LogField = std::pair<const char*, std::string>;

// Thread-safe. `event` is a stable dotted name that scripts may search for.
void Log(LogLevel level, const char* event, std::initializer_list<LogField> fields = {});

// "debug", "info", "warning" or "error"; INVALID_ARGUMENT otherwise. Takes effect at once.
absl::Status SetLogLevel(const std::string& name);
// OK for the names that SetLogLevel takes.
absl::Status ValidateLogLevel(const std::string& name);

}  // namespace ecpipe
