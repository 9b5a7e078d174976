// SPDX-License-Identifier: Apache-2.0
// What the terminal can show.
#pragma once

#include <cstddef>

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

// Writes a text to standard output in the style of that.
void PrintTable(const Table& table);

}  // namespace ecpipe
