// SPDX-License-Identifier: Apache-2.0
// Logs are events with keys, one line each on standard error, as text or as a JSON object:
//   2026-01-02T03:04:05.678Z INFO repair.begin repair=00c0ffee00c0ffee scheme=rp k=10
//   {"time":"2026-01-02T03:04:05.678Z","level":"INFO","event":"repair.begin","repair":"00c0ff...
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace ecpipe {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

struct LogSettings {
  LogLevel least_level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  // Each line begins with its priority, such as <6>, which journald takes off. Source:
  // sd-daemon(3).
  bool in_journal = false;
};

// A key and its value. In text, values with spaces, quotes or control characters are quoted; in
// JSON, each value is a string. "time", "level" and "event" are no keys of fields.
using LogField = std::pair<const char*, std::string>;

// Thread-safe. `event` is a stable dotted name that scripts may search for. Waits but a moment for
// whoever reads standard error: lines that it does not take are left out, and log.left_out counts.
void Log(LogLevel level, const char* event, std::initializer_list<LogField> fields = {});

// Takes effect at once. Thread-safe.
void SetLog(const LogSettings& settings);

// "debug", "info", "warning" or "error"; INVALID_ARGUMENT otherwise.
absl::StatusOr<LogLevel> LogLevelNamed(const std::string& name);
// "text" or "json"; INVALID_ARGUMENT otherwise.
absl::StatusOr<LogFormat> LogFormatNamed(const std::string& name);

}  // namespace ecpipe
