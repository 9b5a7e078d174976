// SPDX-License-Identifier: Apache-2.0
// A scratch directory with a file in it that is encoded, damaged and decoded.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "requestor/files/file_coder.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {

class CodingFixture : public testing::Test {
 protected:
  using Bytes = std::string;

  static Bytes Noise(size_t bytes) {
    std::mt19937_64 random(20260104 + bytes);
    Bytes noise(bytes, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    return noise;
  }

  static void Put(const std::string& path, const Bytes& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static Bytes Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Flip(const std::string& path, size_t offset) {
    Bytes bytes = Content(path);
    bytes.at(offset) = static_cast<char>(bytes[offset] ^ 1);
    Put(path, bytes);
  }

  // All files and directories below the scratch directory, e.g. {"in", "out", "out/x-s00000-b00"}.
  std::set<std::string> Tree() const {
    std::set<std::string> names;
    const std::filesystem::path root = scratch_.File("");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      names.insert(std::filesystem::relative(entry.path(), root).string());
    }
    return names;
  }

  EncodeOptions Options(const std::string& code, uint64_t block_bytes) const {
    return {scratch_.File("in"), scratch_.File("out"), code, block_bytes, "x", {},
            ChecksumFiles::kOmit};
  }

  Manifest Encoded(const Bytes& content, const EncodeOptions& options) {
    Put(scratch_.File("in"), content);
    const auto manifest = EncodeFile(options);
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    return manifest.ok() ? *manifest : Manifest{};
  }

  absl::Status Decode(const Manifest& manifest,
                      BlockChecksums checksums = BlockChecksums::kVerify) const {
    return DecodeFile(manifest, {scratch_.File("out"), scratch_.File("decoded"), checksums});
  }

  // Collects what progress is told, and looks whether that grows up to the total.
  class Told {
   public:
    ProgressFn Callback() {
      return [this](uint64_t done, uint64_t total) {
        EXPECT_TRUE(calls_ == 0 || (done >= done_ && total == total_));
        EXPECT_LE(done, total);
        ++calls_;
        steps_ += calls_ == 1 || done > done_ ? 1 : 0;
        done_ = done;
        total_ = total;
      };
    }
    // It came to this total, by more than one step.
    void ExpectReached(uint64_t total) const {
      EXPECT_EQ(total_, total);
      EXPECT_EQ(done_, total);
      EXPECT_GT(steps_, 1);
    }
    int calls() const { return calls_; }

   private:
    int calls_ = 0;
    int steps_ = 0;
    uint64_t done_ = 0;
    uint64_t total_ = 0;
  };

  // The path of a block that was encoded without nodes.
  std::string Block(const Manifest& manifest, size_t stripe, size_t block) const {
    return scratch_.File("out/" + manifest.stripes[stripe].blocks[block].block_id);
  }

  const ScratchDirectory scratch_;
};

}  // namespace ecpipe
