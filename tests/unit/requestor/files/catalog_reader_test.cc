// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/catalog_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "requestor/files/catalog_lines.h"

namespace ecpipe::catalog_reader_test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Stripe MakeStripe(const std::string& name) {
  return {"s" + name, "rs(3,2)", 64, {{"a" + name, "n1"}, {"b" + name, "n2"}}, {}};
}

class CatalogReaderTest : public testing::Test {
 protected:
  ~CatalogReaderTest() override { std::filesystem::remove(path_); }

  CatalogReader Reader(const std::string& content) {
    std::ofstream(path_, std::ios::binary) << content;
    return CatalogReader::Open(path_).value();
  }
  // Whether all names of the file are in it once.
  absl::Status CheckNames(const std::string& content) {
    CatalogReader reader = Reader(content);
    const std::vector<Stripe> stripes = reader.NextStripes(100).value();
    CatalogNames names;
    for (const Stripe& stripe : stripes) names.Add(stripe);
    return names.CheckOnce(path_);
  }

  const std::string path_ = testing::TempDir() + "catalog-reader-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CatalogReaderTest, ReadsStripesInOrder) {
  CatalogReader reader =
      Reader(CatalogLine(MakeStripe("1")) + "\n\n" + CatalogLine(MakeStripe("2")) + "\n" +
             CatalogLine(MakeStripe("3")));  // the last line has no end
  EXPECT_EQ(reader.NextStripes(2).value(), (std::vector<Stripe>{MakeStripe("1"), MakeStripe("2")}));
  EXPECT_THAT(reader.Where(), HasSubstr(":3"));
  EXPECT_EQ(reader.NextStripes(2).value(), std::vector<Stripe>{MakeStripe("3")});
  EXPECT_THAT(reader.NextStripes(2).value(), SizeIs(0));
  EXPECT_EQ(reader.Next().value(), std::nullopt);
}

TEST_F(CatalogReaderTest, ABadLineIsNamed) {
  CatalogReader reader = Reader(CatalogLine(MakeStripe("1")) + "\n{}\n");
  const absl::Status status = reader.NextStripes(10).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_ + ":2: "));
}

TEST_F(CatalogReaderTest, WhatFollowsTheEndOfATextIsPartOfTheLine) {
  CatalogReader reader = Reader(CatalogLine(MakeStripe("1")) + std::string("\0x\n", 3));
  EXPECT_TRUE(absl::IsInvalidArgument(reader.Next().status()));
}

TEST_F(CatalogReaderTest, ALineHasALimit) {
  const std::string line = CatalogLine(MakeStripe("1"));
  const std::string longest = line + std::string(kMaxCatalogLineBytes - line.size(), ' ');
  EXPECT_EQ(Reader(longest + "\n").Next().value(), MakeStripe("1"));
  EXPECT_EQ(Reader(longest).Next().value(), MakeStripe("1"));
  EXPECT_TRUE(absl::IsInvalidArgument(Reader(longest + " \n").Next().status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Reader(longest + longest).Next().status()));
}

TEST_F(CatalogReaderTest, WhatCannotBeRead) {
  EXPECT_TRUE(absl::IsNotFound(CatalogReader::Open(path_ + "-nowhere").status()));
  absl::StatusOr<CatalogReader> folder = CatalogReader::Open(testing::TempDir());
  EXPECT_FALSE(folder.ok() && folder->Next().ok());
  EXPECT_EQ(Reader("").Next().value(), std::nullopt);
}

TEST_F(CatalogReaderTest, ANameInTwoLines) {
  const std::string lines = CatalogLine(MakeStripe("1")) + "\n" + CatalogLine(MakeStripe("2"));
  EXPECT_TRUE(CheckNames(lines).ok());
  const absl::Status stripe = CheckNames(lines + "\n" + CatalogLine(MakeStripe("2")));
  EXPECT_TRUE(absl::IsInvalidArgument(stripe)) << stripe;
  EXPECT_THAT(std::string(stripe.message()), HasSubstr(":3: stripe s2 is at " + path_ + ":2"));
  Stripe other = MakeStripe("3");
  other.blocks[1].block_id = "a1";
  const absl::Status block = CheckNames(lines + "\n" + CatalogLine(other));
  EXPECT_THAT(std::string(block.message()), HasSubstr(":3: block a1 is at " + path_ + ":1"));
  // A stripe may have the name of a block.
  other = MakeStripe("3");
  other.blocks[1].block_id = "s1";
  EXPECT_TRUE(CheckNames(lines + "\n" + CatalogLine(other)).ok());
}

}  // namespace
}  // namespace ecpipe::catalog_reader_test
