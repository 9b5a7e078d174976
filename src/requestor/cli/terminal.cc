// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "absl/strings/numbers.h"

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

void PrintTable(const Table& table) {
  std::fputs(table.Text(OutputStyleOf(STDOUT_FILENO)).c_str(), stdout);
}

}  // namespace ecpipe
