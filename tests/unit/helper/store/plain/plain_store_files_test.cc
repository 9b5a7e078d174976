// SPDX-License-Identifier: Apache-2.0
// Files of blocks: listed, and removed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/fault_points.h"
#include "helper/store/plain/block_claims.h"
#include "helper/store/plain/plain_root.h"
#include "unit/helper/store/plain/plain_store_fixture.h"

namespace ecpipe::plain_store_files_test {
namespace {

std::vector<std::string> IdsOf(const std::vector<BlockFile>& files) {
  std::vector<std::string> ids;
  for (const BlockFile& file : files) ids.push_back(file.block_id);
  return ids;
}

TEST_F(PlainStoreTest, ListsFilesInTheOrderOfIdsPageByPage) {
  for (const char* id : {"e", "a", "c"}) Put(first_ + "/" + id, id);
  for (const char* id : {"b", "c", "d"}) Put(second_ + "/" + id, "longer");
  Put(first_ + "/.hidden", "x");
  std::filesystem::create_directories(first_ + "/directory");
  using Ids = std::vector<std::string>;
  EXPECT_EQ(IdsOf(store_->ListFiles("", 100).value()), Ids({"a", "b", "c", "c", "d", "e"}));
  // Both files of a block, though one more than was asked for.
  EXPECT_EQ(IdsOf(store_->ListFiles("", 3).value()), Ids({"a", "b", "c", "c"}));
  EXPECT_EQ(IdsOf(store_->ListFiles("c", 3).value()), Ids({"d", "e"}));
  EXPECT_EQ(IdsOf(store_->ListFiles("e", 3).value()), Ids());
  EXPECT_EQ(store_->ListFiles("d", 1).value().front().bytes, 1u);
}

// A page that read the whole directory for itself would see what has come meanwhile.
TEST_F(PlainStoreTest, PagesOfAListingShareOneReading) {
  for (const char* id : {"a", "b", "c", "d", "e"}) Put(first_ + "/" + id, "x");
  using Ids = std::vector<std::string>;
  EXPECT_EQ(IdsOf(store_->ListFiles("", 2).value()), Ids({"a", "b"}));
  Put(first_ + "/cc", "x");
  std::filesystem::remove(first_ + "/d");
  EXPECT_EQ(IdsOf(store_->ListFiles("b", 2).value()), Ids({"c", "e"})) << "without what is gone";
  EXPECT_EQ(IdsOf(store_->ListFiles("e", 2).value()), Ids());
  EXPECT_EQ(IdsOf(store_->ListFiles("", 2).value()), Ids({"a", "b"}));
  EXPECT_EQ(IdsOf(store_->ListFiles("b", 9).value()), Ids({"c", "cc", "e"})) << "another listing";
  EXPECT_EQ(IdsOf(store_->ListFiles("a", 9).value()), Ids({"b", "c", "cc", "e"})) << "not kept";
}

TEST_F(PlainStoreTest, AListIsWholeOrAnError) {
  Put(first_ + "/a", "x");
  ArmFault("plain_store.count1", {});
  EXPECT_FALSE(store_->ListFiles("", 10).ok());
  DisarmAllFaults();
}

TEST_F(PlainStoreTest, RemovesTheFileThatWasListedWithItsChecksums) {
  auto writer = store_->Create("block", 4).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'d', 'a', 't', 'a'}).ok());
  ASSERT_TRUE(writer->Commit().ok());
  writer.reset();
  const std::vector<BlockFile> files = store_->ListFiles("", 10).value();
  ASSERT_EQ(IdsOf(files), std::vector<std::string>({"block"}));
  auto reader = store_->Open("block").value();
  EXPECT_TRUE(store_->Remove(files[0]).ok());
  EXPECT_EQ(Read(reader.get(), 0, 4).value(), "data") << "who reads it goes on";
  EXPECT_TRUE(absl::IsNotFound(store_->Open("block").status()));
  EXPECT_TRUE(std::filesystem::is_empty(first_));
  EXPECT_TRUE(std::filesystem::is_empty(second_));
  EXPECT_TRUE(absl::IsNotFound(store_->Remove(files[0])));
}

TEST_F(PlainStoreTest, DoesNotRemoveAFileThatHasBeenReplaced) {
  Put(first_ + "/block", "old!");
  const BlockFile old = store_->ListFiles("", 10).value().at(0);
  auto writer = store_->Create("block", 4).value();
  ASSERT_TRUE(writer->WriteAt(0, std::vector<uint8_t>{'n', 'e', 'w', '!'}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Remove(old))) << "it is being stored";
  ASSERT_TRUE(writer->Commit().ok());
  writer.reset();
  EXPECT_TRUE(absl::IsNotFound(store_->Remove(old)));
  EXPECT_EQ(ReadAll("block").value(), "new!");
}

TEST_F(PlainStoreTest, RemovesOneOfTwoFilesOfABlock) {
  Put(first_ + "/block", "1111");
  Put(second_ + "/block", "22222");
  const std::vector<BlockFile> files = store_->ListFiles("", 10).value();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(store_->Remove(files[1]).ok());
  EXPECT_EQ(ReadAll("block").value(), "1111");
}

// Both would take the file for a copy of the other's.
TEST_F(PlainStoreTest, RemovesNothingFromADirectoryThatAnotherHelperUses) {
  Put(first_ + "/block", "1111");
  const BlockFile file = store_->ListFiles("", 10).value().at(0);
  auto other = OpenPlainStore({first_}).value();
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->Remove(file)));
  EXPECT_EQ(ReadAll("block").value(), "1111");
  other.reset();
  absl::Status removed;
  for (int i = 0; i < 1000; ++i) {
    removed = store_->Remove(file);
    if (removed.ok()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // sleep-ok: the other's threads
  }
  EXPECT_TRUE(removed.ok()) << removed;
}

TEST_F(PlainStoreTest, RemovesNothingOnceNobodyWaitsForIt) {
  const std::string directory = scratch_.File("third");
  std::filesystem::create_directories(directory);
  Put(directory + "/block", "1111");
  const PlainRoot root(directory, 0);
  const BlockFile file = root.List("", 10).value().at(0);
  const TimePoint now = Clock::System().Now();
  EXPECT_TRUE(absl::IsUnavailable(root.Remove(file, now)));
  EXPECT_TRUE(std::filesystem::exists(directory + "/block"));
  EXPECT_TRUE(root.Remove(file, now + std::chrono::hours(1)).ok());
  EXPECT_FALSE(std::filesystem::exists(directory + "/block"));
}

TEST_F(PlainStoreTest, RemovesNothingByAPath) {
  Put(scratch_.File("outside"), "x");
  EXPECT_TRUE(absl::IsInvalidArgument(store_->Remove({"../outside", 1, ""})));
  EXPECT_TRUE(std::filesystem::exists(scratch_.File("outside")));
}

TEST(BlockClaims, AreGivenToOneKindAtATime) {
  BlockClaims claims;
  const BlockClaims::Claim stored = claims.ToStore("a");
  BlockClaims::Claim again = claims.ToStore("a");
  EXPECT_NE(again, nullptr) << "several attempts may store it";
  EXPECT_EQ(claims.ToRemove("a"), nullptr);
  BlockClaims::Claim removed = claims.ToRemove("b");
  EXPECT_NE(removed, nullptr);
  EXPECT_EQ(claims.ToRemove("b"), nullptr);
  EXPECT_EQ(claims.ToStore("b"), nullptr);
  again.reset();
  EXPECT_EQ(claims.ToRemove("a"), nullptr) << "the first one goes on";
  removed.reset();
  EXPECT_NE(claims.ToStore("b"), nullptr);
}

}  // namespace
}  // namespace ecpipe::plain_store_files_test
