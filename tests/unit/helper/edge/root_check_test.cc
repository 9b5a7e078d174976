// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/root_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace ecpipe::root_check_test {
namespace {

namespace fs = std::filesystem;

class RootCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("root_check_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "deep" / "deeper");
    std::ofstream(root_ / "deep" / "deeper" / "block") << "bytes";
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(RootCheck, AGoodRootIsLeftAsItWas) {
  EXPECT_TRUE(CheckRoot(root_, RootUse::kTakeBlocks).ok());
  size_t entries = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_)) entries += entry.exists();
  EXPECT_EQ(entries, 3u);
}

TEST_F(RootCheck, AnEmptyRootIsGood) {
  fs::remove_all(root_ / "deep");
  EXPECT_TRUE(CheckRoot(root_, RootUse::kTakeBlocks).ok());
}

TEST_F(RootCheck, ARootThatIsGoneOrAFile) {
  fs::remove_all(root_);
  EXPECT_TRUE(absl::IsNotFound(CheckRoot(root_, RootUse::kReadBlocks)));
  std::ofstream(root_.string()) << "a file";
  const absl::Status status = CheckRoot(root_, RootUse::kReadBlocks);
  EXPECT_NE(std::string(status.message()).find("open the directory"), std::string::npos) << status;
}

TEST_F(RootCheck, ALinkToARootIsGood) {
  const fs::path link = root_.string() + ".link";
  fs::remove(link);
  fs::create_directory_symlink(root_, link);
  EXPECT_TRUE(CheckRoot(link, RootUse::kTakeBlocks).ok());
  fs::remove(link);
}

// A file system whose files cannot be made or read by anybody.
TEST_F(RootCheck, ARootThatTakesNothing) {
  EXPECT_FALSE(CheckRoot("/proc/self/task", RootUse::kTakeBlocks).ok());
}

}  // namespace
}  // namespace ecpipe::root_check_test
