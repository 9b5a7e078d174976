// SPDX-License-Identifier: Apache-2.0
#include "requestor/cli/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::table_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Table Nodes() {
  Table table({{"node", Table::Align::kLeft, /*shrinks=*/true},
               {"state"},
               {"blocks", Table::Align::kRight},
               {"version", Table::Align::kLeft, false, 1}});
  table.Add({{"node-in-a-long-row"}, {"live", Tint::kGood}, {"7"}, {"1.2.3"}});
  table.Add({{"n2"}, {"dead", Tint::kBad}, {"12345"}, {""}});
  return table;
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    longest = std::max(longest, end - at);
    at = end + 1;
  }
  return longest;
}

TEST(Table, ColumnsAreAsWideAsTheirCells) {
  EXPECT_EQ(Nodes().Text({}),
            "node                state  blocks  version\n"
            "node-in-a-long-row  live        7  1.2.3\n"
            "n2                  dead    12345\n");
}

TEST(Table, WhatShrinksIsCutFirst) {
  EXPECT_EQ(Nodes().Text({.columns = 40}),
            "node              state  blocks  version\n"
            "node-in-a-lon...  live        7  1.2.3\n"
            "n2                dead    12345\n");
}

TEST(Table, ThenColumnsAreLeftOutByName) {
  EXPECT_EQ(Nodes().Text({.columns = 30}),
            "node             state  blocks\n"
            "node-in-a-lo...  live        7\n"
            "n2               dead    12345\n"
            "no room for: version\n");
}

TEST(Table, NoLineIsLongerThanTheTerminal) {
  for (size_t columns = 24; columns < 60; ++columns) {
    EXPECT_LE(LongestLine(Nodes().Text({.columns = columns})), columns);
  }
}

TEST(Table, ColoursTakeNoRoom) {
  const std::string text = Nodes().Text({.columns = 30, .colours = true});
  EXPECT_THAT(text, HasSubstr("\033[31mdead\033[0m    12345\n"));
  EXPECT_THAT(text, HasSubstr("node-in-a-lo...  \033[32mlive\033[0m"));
  EXPECT_THAT(Nodes().Text({.columns = 30}), Not(HasSubstr("\033")));
}

TEST(Table, NoCellMovesTheCursor) {
  Table table({{"detail"}});
  table.Add({{"bad\033[2J\ntext"}});
  EXPECT_EQ(table.Text({}), "detail\nbad?[2J?text\n");
}

TEST(Table, ACharacterTakesOneColumn) {
  Table table({{"rack", Table::Align::kRight}, {"x"}});
  table.Add({{"größe"}, {"1"}});
  table.Add({{"ab"}, {"2"}});
  EXPECT_EQ(table.Text({}), " rack  x\ngröße  1\n   ab  2\n");
  EXPECT_EQ(FitText("größen und mehr", 6), "grö...");
  EXPECT_EQ(FitText("größen", 6), "größen");
  EXPECT_EQ(FitText("größen", 2), "gr");
}

}  // namespace
}  // namespace ecpipe::table_test
