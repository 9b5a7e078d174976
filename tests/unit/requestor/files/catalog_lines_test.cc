// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/catalog_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::catalog_lines_test {
namespace {

using ::testing::HasSubstr;

Stripe Example() {
  return {"f-s0",
          "rs(3,2)",
          65536,
          {{"b0", "node-1", std::string(64, 'a')}, {"b\"1", "node-2"}, {"b2", "größe"}},
          {}};
}

TEST(CatalogLines, ALineIsReadAsItWasWritten) {
  const std::string line = CatalogLine(Example());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(ParseCatalogLine(line).value(), Example());
}

TEST(CatalogLines, WhatIsNotKnownIsRefusedByName) {
  for (const auto& [line, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "no JSON"},
           {"{", "no JSON"},
           {"[]", "no object"},
           {R"json({"stripe_id":"s","code":"rs(3,2)","block_bytes":1})json", "'blocks'"},
           {R"json({"code":"rs(3,2)","block_bytes":1,"blocks":[]})json", "'stripe_id'"},
           {R"json({"stripe_id":7,"code":"rs(3,2)","block_bytes":1,"blocks":[]})json",
            "'stripe_id'"},
           {R"json({"stripe_id":"s","code":"c","block_bytes":-1,"blocks":[]})json",
            "'block_bytes'"},
           {R"json({"stripe_id":"s","code":"c","block_bytes":1.5,"blocks":[]})json",
            "'block_bytes'"},
           {R"json({"stripe_id":"s","code":"c","block_bytes":1,"blocks":[],"x":1})json",
            "no key 'x'"},
           {R"json({"stripe_id":"s","code":"c","block_bytes":1,"blocks":[7]})json", "no object"},
           {R"json({"stripe_id":"s","code":"c","block_bytes":1,"blocks":[{"node":"n"}]})json",
            "'block_id'"}}) {
    const absl::Status status = ParseCatalogLine(line).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << line;
  }
  EXPECT_FALSE(ParseCatalogLine(std::string(kMaxCatalogLineBytes + 1, ' ')).ok());
}

}  // namespace
}  // namespace ecpipe::catalog_lines_test
