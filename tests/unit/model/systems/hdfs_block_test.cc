// SPDX-License-Identifier: Apache-2.0
#include "model/systems/hdfs_block.h"

#include <gtest/gtest.h>

#include "model/block_id.h"

namespace ecpipe::hdfs_block_test {
namespace {

TEST(HdfsBlock, NamesAndReadsItself) {
  for (const HdfsBlock& block :
       {HdfsBlock{"BP-1-127.0.0.1-17", -9223372036854775791, 1001},
        {"BP-1-127.0.0.1-17", INT64_MIN, 0},
        {"p.blk_1_2", 1073741825, static_cast<uint64_t>(INT64_MAX)},
        {std::string(200, 'x'), INT64_MIN + 5, static_cast<uint64_t>(INT64_MAX)}}) {
    EXPECT_TRUE(ValidateBlockId(block.Name()).ok()) << block.Name();
    EXPECT_EQ(ParseHdfsBlock(block.Name()).value(), block);
  }
  EXPECT_EQ((HdfsBlock{"BP-1-127.0.0.1-17", -9223372036854775791, 1001}).Name(),
            "BP-1-127.0.0.1-17.blk_-9223372036854775791_1001");
}

TEST(HdfsBlock, RefusesWhatItWouldNotWrite) {
  for (const char* name : {"",
                           "BP-1",
                           "BP-1.blk_",
                           "BP-1.blk_5",
                           "BP-1.blk_5_",
                           "BP-1.blk__1",
                           ".blk_5_1",
                           "BP-1.blk_05_1",
                           "BP-1.blk_+5_1",
                           "BP-1.blk_-0_1",
                           "BP-1.blk_5_01",
                           "BP-1.blk_5_-1",
                           "BP-1.blk_5_1.meta",
                           "BP-1.blk_9223372036854775808_1",
                           "BP-1.blk_5_9223372036854775808",
                           "../x.blk_5_1",
                           "a/b.blk_5_1",
                           ".x.blk_5_1",
                           "BP 1.blk_5_1",
                           "BP-1.blk_5_1_2"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseHdfsBlock(name).status())) << name;
  }
  EXPECT_FALSE(ValidateHdfsPool(std::string(201, 'x')).ok());
}

TEST(HdfsBlock, TakesTheFormOfHdfsLogs) {
  EXPECT_EQ(CanonicalBlockId("BP-1-127.0.0.1-17:blk_-9223372036854775791_1001"),
            "BP-1-127.0.0.1-17.blk_-9223372036854775791_1001");
  for (const char* other : {"", "mine-s00000-b02", "BP-1.blk_5_1", "BP-1:blk_5", "BP-1:blk_05_1",
                            "a/b:blk_5_1", "BP-1:5_1", ":blk_5_1", "BP-1:blk_5_1:blk_5_1"}) {
    EXPECT_EQ(CanonicalBlockId(other), other);
  }
}

}  // namespace
}  // namespace ecpipe::hdfs_block_test
