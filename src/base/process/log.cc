// SPDX-License-Identifier: Apache-2.0
#include "base/process/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "absl/status/statusor.h"
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

// Text from the network ends up in logs: keep it on its line.
std::string Quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \"=\\\t\r\n") == std::string::npos;
  std::string out;
  if (!plain) out += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += '?';
    } else {
      out += c;
    }
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
