// SPDX-License-Identifier: Apache-2.0
// Tables for people. Pure; terminal.h says how wide they may be.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ecpipe {

// How text may look.
struct OutputStyle {
  size_t columns = 0;  // that a line may have; 0: as many as it needs
  bool colours = false;
};

enum class Tint { kPlain, kGood, kBad, kBusy, kFaint };

// The text between the codes that colour it; as it is where there are no colours.
std::string Tinted(const std::string& text, Tint tint, const OutputStyle& style);

// The text, cut so that it takes `columns` at most; "..." stands for the rest where there is room
// for that. A character of UTF-8 takes one column.
std::string FitText(const std::string& text, size_t columns);

// Rows below titles. Each column is as wide as its longest cell. Where a line has no room for all
// of them, columns that shrink are cut, the widest first, and then columns are left out; Text()
// says which.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    bool shrinks = false;
    int leave_out = 0;  // columns with the greatest number go first; 0: never
  };
  struct Cell {
    std::string text;  // control characters are shown as '?'
    Tint tint = Tint::kPlain;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns.
  void Add(std::vector<Cell> row);
  bool empty() const { return rows_.empty(); }
  // Each line ends with a newline, and none with spaces.
  std::string Text(const OutputStyle& style) const;
  // The titles and the rows, without newlines.
  std::vector<std::string> Lines(const OutputStyle& style) const;

 private:
  std::vector<size_t> NaturalWidths() const;
  // Leaves out and cuts what does not fit: no width for a column that is left out.
  std::vector<size_t> WidthsWithin(size_t columns) const;
  std::string Line(const std::vector<Cell>& cells, const std::vector<size_t>& widths,
                   const OutputStyle& style) const;

  const std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace ecpipe
