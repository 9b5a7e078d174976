// SPDX-License-Identifier: Apache-2.0
#include "model/scheme_info.h"

#include <gtest/gtest.h>

namespace ecpipe::scheme_info_test {
namespace {

TEST(SchemeInfo, JsonHasEveryField) {
  const SchemeInfo scheme{"one", "repairs", "a path", "1 + (k-1)/s", "§3.2", 64,
                          {"links", "racks"}};
  EXPECT_EQ(SchemesJson({scheme}), R"([
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
