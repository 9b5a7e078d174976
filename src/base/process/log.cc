// SPDX-License-Identifier: Apache-2.0
#include "base/process/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes/utf8_text.h"
#include "base/status.h"

namespace ecpipe {
namespace {

spdlog::logger& Logger() {
  static const std::shared_ptr<spdlog::logger> logger = [] {
    auto made = std::make_shared<spdlog::logger>("ecpipe",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc));
    made->set_level(spdlog::level::info);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *logger;
}

struct LevelName {
  LogLevel level;
  spdlog::level::level_enum spdlog_level;
  const char* in_config;
  const char* in_line;
};
constexpr LevelName kLevels[] = {
    {LogLevel::kDebug, spdlog::level::debug, "debug", "DEBUG"},
    {LogLevel::kInfo, spdlog::level::info, "info", "INFO"},
    {LogLevel::kWarning, spdlog::level::warn, "warning", "WARNING"},
    {LogLevel::kError, spdlog::level::err, "error", "ERROR"},
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

void Log(LogLevel level, const char* event, std::initializer_list<LogField> fields) {
  const LevelName& name = NameOf(level);
  if (!Logger().should_log(name.spdlog_level)) return;
  std::string line = std::string(name.in_line) + " " + event;
  for (const LogField& field : fields)
    line += std::string(" ") + field.first + "=" + Quoted(field.second);
  Logger().log(name.spdlog_level, "{}", line);
}

absl::Status SetLogLevel(const std::string& name) {
  ECPIPE_ASSIGN_OR_RETURN(const LevelName* level, LevelNamed(name));
  Logger().set_level(level->spdlog_level);
  return absl::OkStatus();
}

absl::Status ValidateLogLevel(const std::string& name) { return LevelNamed(name).status(); }

}  // namespace ecpipe
