// SPDX-License-Identifier: Apache-2.0
// A plain store over two directories.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "helper/store/plain/plain_store.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {

class PlainStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(first_);
    std::filesystem::create_directories(second_);
    auto store = OpenPlainStore({first_, second_});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  static void Put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  static absl::StatusOr<std::string> Read(BlockReader* block, uint64_t offset, size_t bytes) {
    std::vector<uint8_t> out(bytes);
    if (absl::Status read = block->ReadAt(offset, out); !read.ok()) return read;
    return std::string(out.begin(), out.end());
  }

  absl::StatusOr<std::string> ReadAll(const std::string& block_id) {
    auto block = store_->Open(block_id);
    if (!block.ok()) return block.status();
    return Read(block->get(), 0, (*block)->bytes());
  }

  const ScratchDirectory scratch_;
  const std::string first_ = scratch_.File("first");
  const std::string second_ = scratch_.File("second");
  std::unique_ptr<BlockStore> store_;
};

}  // namespace ecpipe
