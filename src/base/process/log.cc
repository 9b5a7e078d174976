// SPDX-License-Identifier: Apache-2.0
#include "base/process/log.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes/utf8_text.h"
#include "base/mutex.h"
#include "base/process/log_line.h"
#include "base/unique_fd.h"
#include "nlohmann/json.hpp"

namespace ecpipe {
namespace {

std::atomic<LogLevel> least_level = LogLevel::kInfo;
std::atomic<LogFormat> format = LogFormat::kText;
std::atomic<bool> in_journal = false;

// "2026-01-02T03:04:05.678Z"
std::string TimeNow() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = millis / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 48> text{};
  const size_t date = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + date, text.size() - date, ".%03dZ", static_cast<int>(millis % 1000));
  return text.data();
}

// Standard error, whose reader may have stopped: it is waited for only a moment, by the first line
// that it does not take, since all threads log. Lines of several threads do not mix. A log that
// cannot be written is no reason to fail.
class Output {
 public:
  void Write(const std::string& line) {
    MutexLock lock(&mutex_);
    // Both or none: a pipe that is full may still take what is short.
    left_out_ = Put((left_out_ > 0 ? LeftOut() : "") + line) ? 0 : left_out_ + 1;
  }

 private:
  std::string LeftOut() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return LogLine("WARNING", "log.left_out", {{"lines", std::to_string(left_out_)}});
  }

  // False: it does not take the line, or not to its end.
  bool Put(std::string_view line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string whole = (cut_ ? "\n" : "") + std::string(line);
    std::string_view rest = whole;
    auto give_up = std::chrono::steady_clock::now();
    if (left_out_ == 0) give_up += kPatience;
    while (!rest.empty()) {
      const ssize_t written = WriteAtOnce(rest);
      if (written > 0) rest.remove_prefix(static_cast<size_t>(written));
      if (written >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN || std::chrono::steady_clock::now() >= give_up) break;
      pollfd polled{STDERR_FILENO, POLLOUT, 0};
      poll(&polled, 1, kPauseMillis);
    }
    if (rest.size() < whole.size()) cut_ = !rest.empty();
    return rest.empty();
  }

  // As write(), but EAGAIN where that would wait for the reader of a socket, as journald's, or of a
  // pipe. Its flags are not ours to change: others may write to it as well.
  static ssize_t WriteAtOnce(std::string_view bytes) {
    struct stat info{};
    if (fstat(STDERR_FILENO, &info) != 0) return -1;
    if (S_ISSOCK(info.st_mode)) {
      return send(STDERR_FILENO, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (!S_ISFIFO(info.st_mode)) return write(STDERR_FILENO, bytes.data(), bytes.size());
    const UniqueFd own(open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    return write(own.valid() ? own.get() : STDERR_FILENO, bytes.data(), bytes.size());
  }

  static constexpr std::chrono::milliseconds kPatience{100};
  static constexpr int kPauseMillis = 10;

  Mutex mutex_;
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;  // lines
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;       // the last line has no end
};

struct LevelName {
  LogLevel level;
  const char* in_config;
  const char* in_line;
  char in_journal;
};
constexpr LevelName kLevels[] = {
    {LogLevel::kDebug, "debug", "DEBUG", '7'},
    {LogLevel::kInfo, "info", "INFO", '6'},
    {LogLevel::kWarning, "warning", "WARNING", '4'},
    {LogLevel::kError, "error", "ERROR", '3'},
};

const LevelName& NameOf(LogLevel level) { return kLevels[static_cast<int>(level)]; }

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
std::string Harmless(const std::string& value) {
  const std::string clean = CleanText(value);
  std::string out;
  for (std::string_view rest = clean; !rest.empty();) {
    const size_t hidden = HiddenBytes(rest);
    out += hidden > 0 ? '?' : rest[0];
    rest.remove_prefix(std::max<size_t>(hidden, 1));
  }
  return out;
}

std::string Quoted(const std::string& value) {
  const bool plain = !value.empty() && value.find_first_of(" \"=\\\t\r\n") == std::string::npos;
  if (plain) return Harmless(value);
  std::string out = "\"";
  for (const char c : Harmless(value)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string TextLine(std::string_view level, std::string_view event,
                     std::initializer_list<LogField> fields) {
  std::string line = TimeNow();
  for (const std::string_view word : {level, event}) {
    if (!word.empty()) line += " " + std::string(word);
  }
  for (const LogField& field : fields) {
    line += " " + std::string(field.first) + "=" + Quoted(field.second);
  }
  return line;
}

std::string JsonLine(std::string_view level, std::string_view event,
                     std::initializer_list<LogField> fields) {
  nlohmann::ordered_json line = {{"time", TimeNow()}};
  if (!level.empty()) line["level"] = level;
  if (!event.empty()) line["event"] = event;
  for (const LogField& field : fields) line[field.first] = Harmless(field.second);
  return line.dump();
}

}  // namespace

std::string LogLine(std::string_view level, std::string_view event,
                    std::initializer_list<LogField> fields) {
  return (format == LogFormat::kJson ? JsonLine : TextLine)(level, event, fields) + "\n";
}

void Log(LogLevel level, const char* event, std::initializer_list<LogField> fields) {
  if (level < least_level) return;
  const LevelName& name = NameOf(level);
  const std::string priority = in_journal ? std::string{'<', name.in_journal, '>'} : "";
  static auto* const output = new Output;  // never destroyed: threads may outlive main()
  output->Write(priority + LogLine(name.in_line, event, fields));
}

void SetLog(const LogSettings& settings) {
  least_level = settings.least_level;
  format = settings.format;
  in_journal = settings.in_journal;
}

absl::StatusOr<LogLevel> LogLevelNamed(const std::string& name) {
  for (const LevelName& level : kLevels) {
    if (name == level.in_config) return level.level;
  }
  return absl::InvalidArgumentError("log level '" + name +
                                    "' is not one of debug, info, warning, error");
}

absl::StatusOr<LogFormat> LogFormatNamed(const std::string& name) {
  if (name == "text") return LogFormat::kText;
  if (name == "json") return LogFormat::kJson;
  return absl::InvalidArgumentError("log format '" + name + "' is not one of text, json");
}

}  // namespace ecpipe
