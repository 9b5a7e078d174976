// SPDX-License-Identifier: Apache-2.0
#include "base/secret_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace ecpipe::secret_file_test {
namespace {

using testing::HasSubstr;

class SecretFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "ecpipe-secret-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& content, mode_t mode = 0600) {
    const std::string path = folder_ + "/secret";
    std::ofstream(path) << content;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  static void ExpectRefused(const std::string& path, const std::string& why) {
    const auto secret = ReadSecret(path);
    ASSERT_FALSE(secret.ok());
    EXPECT_EQ(CheckSecret(path), secret.status());
    EXPECT_THAT(std::string(secret.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(secret.status().message()), HasSubstr(why));
  }

  std::string folder_;
};

TEST_F(SecretFile, IsReadWithoutTheEndOfItsLine) {
  EXPECT_EQ(ReadSecret(File("open sesame")).value(), "open sesame");
  EXPECT_EQ(ReadSecret(File("open sesame\r\n", 0640)).value(), "open sesame");
  EXPECT_TRUE(CheckSecret(File("open sesame")).ok());
  EXPECT_TRUE(CheckSecret("").ok());
}

TEST_F(SecretFile, IsRefusedIfOthersMayOpenIt) {
  for (const mode_t mode : {0644, 0660, 0604}) {
    ExpectRefused(File("secret\n", mode), "chmod 640 or 600");
  }
}

TEST_F(SecretFile, IsRefusedIfThereIsNoSecretInIt) {
  ExpectRefused(File("\n"), "it is empty");
  ExpectRefused(File(std::string(5000, 'x')), "more than 4096 bytes");
  ExpectRefused(folder_ + "/none", "No such file");
}

}  // namespace
}  // namespace ecpipe::secret_file_test
