// SPDX-License-Identifier: Apache-2.0
#include "requestor/backup/backup_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ecpipe::backup_archive_test {
namespace {

using ::testing::HasSubstr;

// Of "abc" and of nothing (FIPS 180-4's examples).
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class BackupArchiveTest : public testing::Test {
 protected:
  std::string Field(size_t at, size_t bytes) const { return written_.substr(at, bytes).c_str(); }

  std::string written_;
  BackupArchive archive_{[this](uint64_t offset, std::span<const uint8_t> bytes) {
                           EXPECT_EQ(offset, written_.size());
                           written_.append(bytes.begin(), bytes.end());
                           return absl::OkStatus();
                         },
                         1'700'000'000};
};

TEST_F(BackupArchiveTest, IsATarArchiveWithSums) {
  ASSERT_TRUE(archive_.BeginFile("a.db", 3).ok());
  ASSERT_TRUE(archive_.Add("a").ok());
  ASSERT_TRUE(archive_.Add("bc").ok());
  ASSERT_TRUE(archive_.EndFile(kAbc).ok());
  ASSERT_TRUE(archive_.BeginFile("b.db", 0).ok());
  ASSERT_TRUE(archive_.EndFile(kNothing).ok());
  ASSERT_TRUE(archive_.Finish().ok());
  // Headers, the three bytes padded, the sums padded, two empty records.
  EXPECT_EQ(written_.size(), 512u * (1 + 1 + 1 + 1 + 1 + 2));
  EXPECT_EQ(archive_.bytes(), written_.size());
  EXPECT_EQ(Field(0, 100), "a.db");
  EXPECT_EQ(Field(100, 8), "0000640");
  EXPECT_EQ(Field(124, 12), "00000000003");
  EXPECT_EQ(Field(136, 12), "14524770400");
  EXPECT_EQ(Field(257, 6), "ustar");
  EXPECT_EQ(Field(512, 512), "abc");
  EXPECT_EQ(Field(1024, 100), "b.db");
  EXPECT_EQ(Field(1536, 100), "SHA256SUMS");
  EXPECT_EQ(Field(2048, 512), std::string(kAbc) + "  a.db\n" + std::string(kNothing) + "  b.db\n");
  EXPECT_EQ(archive_.files().size(), 2u);
}

TEST_F(BackupArchiveTest, TheHeadersChecksumCountsItselfAsSpaces) {
  ASSERT_TRUE(archive_.BeginFile("a.db", 3).ok());
  uint32_t sum = 0;
  for (size_t i = 0; i < 512; ++i) {
    sum += i >= 148 && i < 156 ? uint32_t{' '} : static_cast<uint8_t>(written_[i]);
  }
  EXPECT_EQ(std::stoul(Field(148, 8), nullptr, 8), sum);
}

TEST_F(BackupArchiveTest, AFileOver8GibHasItsLengthInBytes) {
  ASSERT_TRUE(archive_.BeginFile("a.db", (uint64_t{1} << 33) + 5).ok());
  EXPECT_EQ(written_.substr(124, 12), std::string("\x80\0\0\0\0\0\0\2\0\0\0\5", 12));
}

TEST_F(BackupArchiveTest, NamesLeadNowhereElse) {
  for (const std::string name :
       {"", ".", "..", "../x.db", "/etc/x", "a/b", ".hidden", "a b", "A", "a\nb"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(archive_.BeginFile(name, 1))) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(archive_.BeginFile(std::string(65, 'a'), 1)));
  EXPECT_EQ(written_, "");
}

TEST_F(BackupArchiveTest, WhatDoesNotFitTogetherIsRefused) {
  EXPECT_TRUE(absl::IsDataLoss(archive_.Add("x")));
  EXPECT_TRUE(absl::IsDataLoss(archive_.EndFile(kAbc)));
  EXPECT_TRUE(absl::IsDataLoss(archive_.Finish()));
  ASSERT_TRUE(archive_.BeginFile("a.db", 3).ok());
  EXPECT_TRUE(absl::IsDataLoss(archive_.BeginFile("b.db", 3)));
  ASSERT_TRUE(archive_.Add("ab").ok());
  EXPECT_THAT(archive_.EndFile(kAbc).message(), HasSubstr("a.db lacks 1 of its 3 bytes"));
  EXPECT_TRUE(absl::IsDataLoss(archive_.Finish()));
  EXPECT_TRUE(absl::IsDataLoss(archive_.Add("cd")));
  ASSERT_TRUE(archive_.Add("d").ok());
  EXPECT_THAT(archive_.EndFile(kAbc).message(), HasSubstr("the coordinator sent"));
}

TEST_F(BackupArchiveTest, TheNumberOfFilesIsBounded) {
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(archive_.BeginFile("f" + std::to_string(i), 0).ok());
    ASSERT_TRUE(archive_.EndFile(kNothing).ok());
  }
  EXPECT_TRUE(absl::IsDataLoss(archive_.BeginFile("one-more", 0)));
}

TEST_F(BackupArchiveTest, AFileComesOnce) {
  ASSERT_TRUE(archive_.BeginFile("a.db", 0).ok());
  ASSERT_TRUE(archive_.EndFile(kNothing).ok());
  EXPECT_TRUE(absl::IsDataLoss(archive_.BeginFile("a.db", 0)));
}

}  // namespace
}  // namespace ecpipe::backup_archive_test
