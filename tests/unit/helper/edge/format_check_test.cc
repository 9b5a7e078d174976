// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/format_check.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/bytes/little_endian.h"
#include "helper/store/qfs/qfs_header.h"
#include "model/block_checksums.h"
#include "unit/helper/store/hdfs_volume_fixture.h"

namespace ecpipe::format_check_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// Root may do all things. The files of this thread are then opened as by nobody.
class NotRoot {
 public:
  NotRoot() {
    if (::geteuid() == 0) ::setfsuid(kNobody);
  }
  ~NotRoot() { ::setfsuid(::geteuid()); }

 private:
  static constexpr uid_t kNobody = 65534;
};

class FormatCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) / ("format_check_" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    // Far from the times of the files.
    clock_.Advance(std::chrono::hours(1000));
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  // A block of these bytes with its checksums.
  void PutBlock(const std::string& name, const std::string& text) const {
    Write(name, text);
    ChecksumFileWriter sums = ChecksumFileWriter::Create(root_, name).value();
    ASSERT_TRUE(sums.Append({reinterpret_cast<const uint8_t*>(text.data()), text.size()}).ok());
    ASSERT_TRUE(sums.Commit(std::string(64, '0')).ok());
  }
  // A chunk without data; `version` of its header.
  void PutChunk(const std::string& name, int64_t file, int64_t chunk, uint32_t version = 1) const {
    std::vector<uint8_t> header(kQfsDataOffset);
    PutLittleEndian(header, 0, uint32_t{0xCAFECAFE});
    PutLittleEndian(header, 4, version);
    PutLittleEndian(header, 8, static_cast<uint64_t>(file));
    PutLittleEndian(header, 16, static_cast<uint64_t>(chunk));
    PutLittleEndian(header, 24, uint64_t{1});
    Write(name, {header.begin(), header.end()});
  }
  FormatLook LookAs(StoreKind store) const {
    const absl::StatusOr<FormatLook> look = LookAtFormat(root_, store, clock_);
    EXPECT_TRUE(look.ok()) << look.status();
    return look.value_or(FormatLook());
  }

  // When it was written, by the clock.
  void SetAge(const std::string& name, Duration age) const {
    const int64_t at = (clock_.Now() - age).time_since_epoch().count();
    const timespec time{at / 1'000'000'000, at % 1'000'000'000};
    const timespec times[] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, (root_ / name).c_str(), times, 0), 0);
  }

  fs::path root_;
  FakeClock clock_;  // stands still, so no look ends by it
};

// Each look at it takes a tenth of a second.
class SlowClock : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(std::chrono::milliseconds(100 * ++looks_)); }
  int64_t UnixMillis() const override { return 0; }

 private:
  mutable int looks_ = 0;
};

TEST_F(FormatCheck, AGoodPlainRoot) {
  PutBlock("a", "bytes");
  PutBlock("b", "more bytes");
  Write("c", "no checksums");
  Write(".ecpipe-tmp-1-2", "being written");
  Write(".crc32c.gone", "of a block that has not got its name");
  fs::create_directory(root_ / "lost+found");
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_EQ(look.headers, 2u);
  EXPECT_EQ(look.names, 8u);
  EXPECT_EQ(look.unreadable.count + look.foreign.count, 0u);
  EXPECT_EQ(look.wrong, "");
  EXPECT_FALSE(look.more);
}

TEST_F(FormatCheck, ChecksumFilesThatDoNotFit) {
  PutBlock("good", "bytes");
  PutBlock("newer", "bytes");
  fs::copy_file(root_ / ".crc32c.good", root_ / ".crc32c.moved");
  Write("moved", "of another length");
  HdfsVolumeFixture::Overwrite(root_ / ".crc32c.newer", 4, "\x03");
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_EQ(look.headers, 3u);
  ASSERT_EQ(look.unreadable.count, 2u);
  for (const FormatLook::Misfit& misfit : look.unreadable.first) {
    EXPECT_THAT(misfit.what, HasSubstr(misfit.name == "newer" ? "format 3" : "for block good"));
  }
}

TEST_F(FormatCheck, NamesThatNoPlainStoreHas) {
  for (const char* name : {"a b", ".hidden", "ü", "more more"}) Write(name, "");
  fs::create_directory(root_ / "folder");
  fs::create_symlink("nowhere", root_ / "link");
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_EQ(look.foreign.count, 6u);
  EXPECT_EQ(look.foreign.first.size(), 3u);
}

TEST_F(FormatCheck, TheLookIsBounded) {
  for (int i = 0; i < 100; ++i) PutBlock("b" + std::to_string(i), "x");
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_LT(look.headers, 100u);
  EXPECT_TRUE(look.more);
}

TEST_F(FormatCheck, TheLookEndsAfterHalfASecond) {
  for (int i = 0; i < 10; ++i) PutBlock("b" + std::to_string(i), "x");
  const FormatLook look = LookAtFormat(root_, StoreKind::kPlain, SlowClock()).value();
  EXPECT_EQ(look.names, 4u);
  EXPECT_TRUE(look.more);
}

// A helper that replaces a block has just named the new one's checksum file.
TEST_F(FormatCheck, AChecksumFileMayBeAheadOfItsBlock) {
  PutBlock("a", "bytes");
  Write("a", "of another length");
  for (const Duration age : {std::chrono::seconds(59), std::chrono::seconds(-59)}) {
    SetAge(".crc32c.a", age);
    const FormatLook look = LookAs(StoreKind::kPlain);
    EXPECT_EQ(look.unreadable.count, 0u);
    EXPECT_TRUE(look.more);
  }
  SetAge(".crc32c.a", std::chrono::minutes(1));
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_EQ(look.unreadable.count, 1u);
  EXPECT_FALSE(look.more);
}

TEST_F(FormatCheck, HeadersOfChunksInAPlainRootCount) {
  for (int i = 1; i <= 100; ++i) Write("5." + std::to_string(i) + ".1", "no chunk");
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_GT(look.headers, 0u);
  EXPECT_LT(look.headers, 100u);
  EXPECT_TRUE(look.more);
}

TEST_F(FormatCheck, RootsOfOtherKinds) {
  PutChunk("5.65539.1", 5, 65539);
  EXPECT_THAT(LookAs(StoreKind::kPlain).wrong, HasSubstr("5.65539.1 is a chunk"));
  EXPECT_EQ(LookAs(StoreKind::kQfs).wrong, "");
  EXPECT_THAT(LookAs(StoreKind::kHdfs).wrong, HasSubstr("no current/VERSION"));
  PutBlock("a", "bytes");
  EXPECT_THAT(LookAs(StoreKind::kQfs).wrong, HasSubstr("checksum files of a plain store"));
  const HdfsVolumeFixture volume(root_);
  EXPECT_THAT(LookAs(StoreKind::kPlain).wrong, HasSubstr("DataNode"));
  EXPECT_THAT(LookAs(StoreKind::kQfs).wrong, HasSubstr("DataNode"));
  EXPECT_EQ(LookAs(StoreKind::kHdfs).wrong, "");
}

// A block may well have such a name.
TEST_F(FormatCheck, APlainBlockWithTheNameOfAChunk) {
  PutBlock("5.65539.1", "bytes");
  const FormatLook look = LookAs(StoreKind::kPlain);
  EXPECT_EQ(look.wrong, "");
  EXPECT_EQ(look.unreadable.count, 0u);
}

TEST_F(FormatCheck, ChunksOfAnotherHeader) {
  PutChunk("5.65539.1", 5, 65539);
  PutChunk("5.65540.1", 5, 65540, 2);
  PutChunk("5.65541.1", 5, 7);
  Write("5.65542.0", "being written");
  Write("evacuate", "a file of the chunkserver");
  const FormatLook look = LookAs(StoreKind::kQfs);
  EXPECT_EQ(look.headers, 3u);
  EXPECT_EQ(look.unreadable.count, 2u);
  EXPECT_EQ(look.foreign.count, 0u);
}

TEST_F(FormatCheck, VolumesOfDataNodes) {
  const HdfsVolumeFixture volume(root_);
  const HdfsBlock good{"BP-1-127.0.0.1-17", 70000, 1001};
  const HdfsBlock newer{good.pool, 70001, 1001};
  volume.Put(good, "bytes");
  volume.Put(newer, "bytes");
  EXPECT_EQ(LookAs(StoreKind::kHdfs).headers, 3u);
  EXPECT_EQ(LookAs(StoreKind::kHdfs).unreadable.count, 0u);
  HdfsVolumeFixture::Overwrite(volume.MetaFile(newer), 0, std::string("\0\2", 2));
  HdfsVolumeFixture::Write(volume.Directory(good) + "/notes", "");
  fs::create_directories(fs::path(volume.Directory(good)).parent_path().parent_path() /
                         "subdir200");
  const FormatLook look = LookAs(StoreKind::kHdfs);
  ASSERT_EQ(look.unreadable.count, 1u);
  EXPECT_THAT(look.unreadable.first[0].what, HasSubstr("version 2"));
  EXPECT_EQ(look.foreign.count, 2u);
}

TEST_F(FormatCheck, VolumesOfAnotherLayout) {
  const HdfsVolumeFixture volume(root_);
  for (const auto& [text, what] : {std::pair("layoutVersion=-56\n", "layout version -56"),
                                   {"storageType=NAME_NODE\n", "of a NAME_NODE"}}) {
    HdfsVolumeFixture::Write(root_ / "current" / "VERSION", text);
    const FormatLook look = LookAs(StoreKind::kHdfs);
    ASSERT_EQ(look.unreadable.count, 1u);
    EXPECT_THAT(look.unreadable.first[0].what, HasSubstr(what));
  }
  HdfsVolumeFixture::Write(root_ / "current" / "VERSION", "layoutVersion=-57\r\n");
  EXPECT_EQ(LookAs(StoreKind::kHdfs).unreadable.count, 0u);
}

TEST_F(FormatCheck, DirectoriesThatCannotBeListed) {
  const HdfsVolumeFixture volume(root_);
  volume.Put({"BP-1", 70000, 1001}, "bytes");
  Write("current/BP-1/current/finalized/subdir30", "no directory");
  Write("current/BP-1/current/finalized/subdir1/subdir31", "no directory");
  fs::create_directories(root_ / "current/BP-2/current");
  Write("current/BP-2/current/finalized", "no directory");
  fs::create_directories(root_ / "current/BP-3/current");  // without blocks
  const FormatLook look = LookAs(StoreKind::kHdfs);
  EXPECT_EQ(look.headers, 2u);
  std::vector<std::string> names;
  for (const FormatLook::Misfit& misfit : look.unreadable.first) names.push_back(misfit.name);
  EXPECT_THAT(names, UnorderedElementsAre("BP-1/subdir30", "BP-1/subdir1/subdir31", "BP-2"));
  EXPECT_EQ(look.foreign.count, 0u);
}

// A directory that tells names and nothing of them.
TEST_F(FormatCheck, FilesThatCannotBeLookedAt) {
  const HdfsVolumeFixture volume(root_);
  const HdfsBlock block{"BP-1", 70000, 1001};
  volume.Put(block, "bytes");
  fs::permissions(volume.Directory(block), fs::perms(0444));
  FormatLook look;
  {
    const NotRoot not_root;
    look = LookAs(StoreKind::kHdfs);
  }
  fs::permissions(volume.Directory(block), fs::perms(0755));
  EXPECT_EQ(look.unreadable.count, 2u);
  ASSERT_FALSE(look.unreadable.first.empty());
  EXPECT_THAT(look.unreadable.first[0].what, HasSubstr("Permission denied"));
}

TEST_F(FormatCheck, WhetherItIsAVolumeIsNotKnown) {
  fs::create_symlink("current", root_ / "current");
  for (const StoreKind store : {StoreKind::kPlain, StoreKind::kQfs, StoreKind::kHdfs}) {
    const absl::Status looked = LookAtFormat(root_, store, clock_).status();
    EXPECT_THAT(std::string(looked.message()), HasSubstr("look for current/VERSION"));
  }
}

TEST_F(FormatCheck, ARootThatIsGone) {
  fs::remove_all(root_);
  EXPECT_FALSE(LookAtFormat(root_, StoreKind::kPlain, clock_).ok());
}

}  // namespace
}  // namespace ecpipe::format_check_test
