// SPDX-License-Identifier: Apache-2.0
#include "model/scheme_info.h"

#include <gtest/gtest.h>

namespace ecpipe::scheme_info_test {
namespace {

const std::vector<SchemeInfo>& TwoSchemes() {
  static const auto* const schemes = new std::vector<SchemeInfo>{
      {"one", "repairs", "a path", "1 + (k-1)/s", "§3.2", 64, {"links", "racks"}},
      {"another", "direct", "a read", "1", "§6.1", 1, {}}};
  return *schemes;
}

TEST(SchemeInfo, TextIsATable) {
  EXPECT_EQ(SchemesText(TwoSchemes()).substr(0, 96),
            "scheme   timeslots    what it does\n"
            "one      1 + (k-1)/s  a path\n"
            "another  1            a read\n"
            "\n"
            "k ");
}

TEST(SchemeInfo, JsonHasEveryField) {
  EXPECT_EQ(SchemesJson({TwoSchemes()[0]}), R"([
  {
    "scheme": "one",
    "kind": "repairs",
    "help": "a path",
    "timeslots": "1 + (k-1)/s",
    "source": "§3.2",
    "most_failed": 64,
    "looks_at": [
      "links",
      "racks"
    ]
  }
]
)");
  EXPECT_EQ(SchemesJson({}), "[]\n");
}

}  // namespace
}  // namespace ecpipe::scheme_info_test
