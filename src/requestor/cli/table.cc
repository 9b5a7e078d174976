// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/table.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/bytes/utf8_text.h"
#include "base/check.h"

namespace ecpipe {
namespace {

constexpr size_t kGap = 2;         // between columns
constexpr size_t kLeastWidth = 8;  // what is left of a node's id when it is cut
constexpr std::string_view kRest = "...";
constexpr size_t kLeftOut = 0;

bool BeginsCharacter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

size_t WidthOf(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), BeginsCharacter));
}

// The first so many characters.
std::string FirstOf(const std::string& text, size_t characters) {
  size_t seen = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (BeginsCharacter(text[at]) && seen++ == characters) return text.substr(0, at);
  }
  return text;
}

size_t TotalOf(const std::vector<size_t>& widths) {
  size_t total = 0;
  for (const size_t width : widths) {
    if (width != kLeftOut) total += width + kGap;
  }
  return total - std::min(total, kGap);
}

const char* CodeOf(Tint tint) {
  switch (tint) {
    case Tint::kPlain:
      return "";
    case Tint::kGood:
      return "\033[32m";
    case Tint::kBad:
      return "\033[31m";
    case Tint::kBusy:
      return "\033[33m";
    case Tint::kFaint:
      return "\033[2m";
  }
  return "";
}

}  // namespace

std::string Tinted(const std::string& text, Tint tint, const OutputStyle& style) {
  if (!style.colours || tint == Tint::kPlain || text.empty()) return text;
  return CodeOf(tint) + text + "\033[0m";
}

std::string FitText(const std::string& text, size_t columns) {
  if (WidthOf(text) <= columns) return text;
  if (columns <= kRest.size()) return FirstOf(text, columns);
  return FirstOf(text, columns - kRest.size()) + std::string(kRest);
}

void Table::Add(std::vector<Cell> row) {
  ECPIPE_CHECK(row.size() == columns_.size());
  for (Cell& cell : row) cell.text = CleanText(cell.text);
  rows_.push_back(std::move(row));
}

std::vector<size_t> Table::NaturalWidths() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    widths.push_back(std::max<size_t>(WidthOf(columns_[i].title), 1));
    for (const auto& row : rows_) widths[i] = std::max(widths[i], WidthOf(row[i].text));
  }
  return widths;
}

std::vector<size_t> Table::WidthsWithin(size_t columns) const {
  std::vector<size_t> widths = NaturalWidths();
  if (columns == 0) return widths;
  while (true) {
    // The widest of the columns that shrink gives way to the next.
    while (TotalOf(widths) > columns) {
      size_t* widest = nullptr;
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (!columns_[i].shrinks || widths[i] <= kLeastWidth) continue;
        if (widest == nullptr || widths[i] > *widest) widest = &widths[i];
      }
      if (widest == nullptr) break;
      --*widest;
    }
    if (TotalOf(widths) <= columns) return widths;
    size_t first = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == kLeftOut || columns_[i].leave_out == 0) continue;
      if (first == columns_.size() || columns_[i].leave_out > columns_[first].leave_out) first = i;
    }
    if (first == columns_.size()) return widths;
    // The others may be as wide as they like again.
    const std::vector<size_t> natural = NaturalWidths();
    for (size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] != kLeftOut) widths[i] = i == first ? kLeftOut : natural[i];
    }
  }
}

std::string Table::Line(const std::vector<Cell>& cells, const std::vector<size_t>& widths,
                        const OutputStyle& style) const {
  std::string line;
  size_t owed = 0;  // spaces before the next text, so that none end the line
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths[i] == kLeftOut) continue;
    const std::string text = FitText(cells[i].text, widths[i]);
    const size_t room = widths[i] - WidthOf(text);
    const bool right = columns_[i].align == Align::kRight;
    if (right) owed += room;
    if (!text.empty()) {
      line += std::string(std::exchange(owed, 0), ' ') + Tinted(text, cells[i].tint, style);
    }
    owed += kGap + (right ? 0 : room);
  }
  return line;
}

std::vector<std::string> Table::Lines(const OutputStyle& style) const {
  const std::vector<size_t> widths = WidthsWithin(style.columns);
  std::vector<Cell> titles;
  for (const Column& column : columns_) titles.push_back({column.title, Tint::kFaint});
  std::vector<std::string> lines = {Line(titles, widths, style)};
  for (const auto& row : rows_) lines.push_back(Line(row, widths, style));
  return lines;
}

std::string Table::Text(const OutputStyle& style) const {
  std::string text;
  for (const std::string& line : Lines(style)) text += line + "\n";
  const std::vector<size_t> widths = WidthsWithin(style.columns);
  std::string left_out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] == kLeftOut) left_out += (left_out.empty() ? "" : ", ") + columns_[i].title;
  }
  if (left_out.empty()) return text;
  return text + Tinted(FitText("no room for: " + left_out, style.columns), Tint::kFaint, style) +
         "\n";
}

}  // namespace ecpipe
