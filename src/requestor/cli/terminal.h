// SPDX-License-Identifier: Apache-2.0
// What the terminal can show, and what is typed there.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "requestor/cli/table.h"

namespace ecpipe {

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;
};

// Of the terminal; the usual size if the descriptor is none or does not say.
ScreenSize ScreenSizeOf(int fd);

// Whether it is a terminal that can move its cursor.
bool IsScreen(int fd);

// On a terminal lines end with it (or after COLUMNS, if that is set), and there are colours unless
// NO_COLOR is set. Elsewhere nothing is cut, and there are no colours.
OutputStyle OutputStyleOf(int fd);

// INVALID_ARGUMENT: a word of the command line, or a variable of the environment that begins with
// ECPIPE_, is not UTF-8. Messages and JSON could not carry it.
absl::Status CheckWords(int count, const char* const* words);

// An error as it is shown: of a length that can be read, whatever it quotes, and without control
// characters but the ends of lines.
std::string ErrorText(const std::string& message);

// Writes a text to standard output in the style of that.
void PrintTable(const Table& table);

}  // namespace ecpipe
