// SPDX-License-Identifier: Apache-2.0
#include "base/process/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes/utf8_text.h"
#include "base/mutex.h"
#include "base/process/log_line.h"
#include "base/status.h"

namespace ecpipe {
namespace {

std::atomic<LogLevel> least_level = LogLevel::kInfo;

// "2026-01-02T03:04:05.678Z "
std::string TimeNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = millis / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 48> text{};
  const size_t date = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + date, text.size() - date, ".%03dZ ", static_cast<int>(millis % 1000));
  return text.data();
}

// Lines of several threads do not mix. A log that cannot be written is no reason to fail.
void WriteLine(std::string_view line) {
  static Mutex mutex;
  MutexLock lock(&mutex);
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) line.remove_prefix(static_cast<size_t>(written));
  }
}

struct LevelName {
  LogLevel level;
  const char* in_config;
  const char* in_line;
};
constexpr LevelName kLevels[] = {
    {LogLevel::kDebug, "debug", "DEBUG"},
    {LogLevel::kInfo, "info", "INFO"},
    {LogLevel::kWarning, "warning", "WARNING"},
    {LogLevel::kError, "error", "ERROR"},
};

const LevelName& NameOf(LogLevel level) { return kLevels[static_cast<int>(level)]; }

absl::StatusOr<const LevelName*> LevelNamed(const std::string& name) {
  for (const LevelName& level : kLevels) {
    if (name == level.in_config) return &level;
  }
  return absl::InvalidArgumentError("log level '" + name +
                                    "' is not one of debug, info, warning, error");
}

// Bytes of the character at the beginning of clean UTF-8 that a terminal or a reader of the log
// might obey though it is printable by its encoding: C1 controls, line separators, and what is
// invisible or turns the direction of the text. 0: another one begins there.
size_t HiddenBytes(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; };
  if (at(0) == 0xc2 && at(1) < 0xa0) return 2;                    // U+0080..9F
  if (at(0) == 0xef && at(1) == 0xbb && at(2) == 0xbf) return 3;  // U+FEFF
  if (at(0) != 0xe2) return 0;
  if (at(1) == 0x80 && at(2) >= 0x8b && at(2) <= 0x8f) return 3;   // U+200B..F
  if (at(1) == 0x80 && at(2) >= 0xa8 && at(2) <= 0xae) return 3;   // U+2028..E
  return at(1) == 0x81 && at(2) >= 0xa0 && at(2) <= 0xaf ? 3 : 0;  // U+2060..F
}

// Text from the network ends up in logs: keep it on its line, and harmless.
std::string Quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \"=\\\t\r\n") == std::string::npos;
  const std::string clean = CleanText(value);
  std::string out;
  if (!plain) out += '"';
  for (std::string_view rest = clean; !rest.empty();) {
    const size_t hidden = HiddenBytes(rest);
    const char c = hidden > 0 ? '?' : rest[0];
    if (c == '"' || c == '\\') out += '\\';
    out += c;
    rest.remove_prefix(std::max<size_t>(hidden, 1));
  }
  if (!plain) out += '"';
  return out;
}

}  // namespace

std::string LogLine(const std::string& words, std::initializer_list<LogField> fields) {
  std::string line = TimeNow() + words;
  for (const LogField& field : fields) {
    line += (line.back() == ' ' ? "" : " ") + std::string(field.first) + "=" + Quoted(field.second);
  }
  return line + "\n";
}

void Log(LogLevel level, const char* event, std::initializer_list<LogField> fields) {
  if (level < least_level) return;
  WriteLine(LogLine(NameOf(level).in_line + std::string(" ") + event, fields));
}

absl::Status SetLogLevel(const std::string& name) {
  ECPIPE_ASSIGN_OR_RETURN(const LevelName* level, LevelNamed(name));
  least_level = level->level;
  return absl::OkStatus();
}

absl::Status ValidateLogLevel(const std::string& name) { return LevelNamed(name).status(); }

}  // namespace ecpipe
