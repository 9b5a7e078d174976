// SPDX-License-Identifier: Apache-2.0
#include "model/block_id.h"

#include <gtest/gtest.h>

namespace ecpipe::block_id_test {
namespace {

TEST(BlockId, AllowsWhatIsAFileNameAndNothingElse) {
  for (const char* id :
       {"a", "0", "-", "_", "blk_-9223372036854775792", "photo-s00000-b03", "A.Z", "a..b", "x."}) {
    EXPECT_TRUE(ValidateBlockId(id).ok()) << id;
  }
  EXPECT_TRUE(ValidateBlockId(std::string(255, 'x')).ok());
}

TEST(BlockId, RefusesEverythingElse) {
  for (const char* id : {"", ".", "..", ".hidden", "../x", "a/b", "/a", "a\\b", "a b", "a\nb", "é",
                         "a:b", "a*", "a?b", "~", "a\tb", "a%2fb"}) {
    EXPECT_EQ(ValidateBlockId(id).code(), absl::StatusCode::kInvalidArgument) << id;
  }
  EXPECT_FALSE(ValidateBlockId(std::string(256, 'x')).ok());
  EXPECT_FALSE(ValidateBlockId(std::string("a\0b", 3)).ok());
  EXPECT_FALSE(ValidateBlockId(std::string("a\0", 2)).ok());
}

TEST(BlockId, RefusesEachOtherByte) {
  const std::string allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  for (int byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    const bool expected = allowed.find(character) != std::string::npos;
    EXPECT_EQ(ValidateBlockId(std::string("x") + character).ok(), expected) << byte;
  }
}

TEST(BlockId, TheMessageDoesNotRepeatTheId) {
  const absl::Status status = ValidateBlockId("evil\x1b[2J");
  EXPECT_EQ(std::string(status.message()).find("evil"), std::string::npos);
}

}  // namespace
}  // namespace ecpipe::block_id_test
