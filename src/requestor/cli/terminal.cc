// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "absl/strings/numbers.h"
#include "base/bytes/utf8_text.h"

namespace ecpipe {
namespace {

// Narrower ones are taken for a mistake.
constexpr unsigned kLeastColumns = 20;

// NO_COLOR counts whatever it says, but not if it is empty: https://no-color.org.
bool NoColourIsAskedFor() {
  const char* const asked = std::getenv("NO_COLOR");
  return asked != nullptr && *asked != '\0';
}

}  // namespace

ScreenSize ScreenSizeOf(int fd) {
  ScreenSize screen;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return screen;
  if (size.ws_col > 0) screen.columns = size.ws_col;
  if (size.ws_row > 0) screen.rows = size.ws_row;
  return screen;
}

bool IsScreen(int fd) {
  const char* const terminal = std::getenv("TERM");
  const bool moves = terminal == nullptr || std::string_view(terminal) != "dumb";
  return moves && ::isatty(fd) == 1;
}

OutputStyle OutputStyleOf(int fd) {
  if (::isatty(fd) != 1) return {};
  OutputStyle style{ScreenSizeOf(fd).columns, IsScreen(fd) && !NoColourIsAskedFor()};
  unsigned columns = 0;
  const char* const asked = std::getenv("COLUMNS");
  if (asked != nullptr && absl::SimpleAtoi(asked, &columns) && columns >= kLeastColumns) {
    style.columns = columns;
  }
  return style;
}

absl::Status CheckWords(int count, const char* const* words) {
  for (int i = 1; i < count; ++i) {
    if (IsUtf8(words[i])) continue;
    return absl::InvalidArgumentError("the word " + QuotedText(words[i]) +
                                      " is not UTF-8; ids and file names must be");
  }
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (!text.starts_with("ECPIPE_") || IsUtf8(text)) continue;
    return absl::InvalidArgumentError("the variable " + QuotedText(text) + " is not UTF-8");
  }
  return absl::OkStatus();
}

std::string ErrorText(const std::string& message) {
  constexpr size_t kMostBytes = 4096;  // a page of a terminal
  std::string shown = ShortText(message, kMostBytes);
  for (size_t begin = 0; begin <= shown.size();) {
    const size_t end = std::min(shown.find('\n', begin), shown.size());
    const std::string line = CleanText(std::string_view(shown).substr(begin, end - begin));
    shown.replace(begin, end - begin, line);
    begin += line.size() + 1;
  }
  return shown;
}

void PrintTable(const Table& table) {
  std::fputs(table.Text(OutputStyleOf(STDOUT_FILENO)).c_str(), stdout);
}

}  // namespace ecpipe
