// SPDX-License-Identifier: Apache-2.0
#include "model/systems/qfs_chunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ecpipe::qfs_chunk_test {
namespace {

using ::testing::HasSubstr;

QfsFile File(uint64_t bytes, int data = 6, uint64_t cell = 65536) {
  return {5, bytes, 2, data, 3, cell};
}

std::vector<uint64_t> Lengths(const QfsFile& file, uint64_t group) {
  std::vector<uint64_t> lengths;
  for (int i = 0; i < file.blocks(); ++i) lengths.push_back(file.ChunkBytes(group, i));
  return lengths;
}

// What was seen on the disks of a real cluster.
TEST(QfsChunk, LengthsAreThoseOfRealChunks) {
  using Bytes = std::vector<uint64_t>;
  EXPECT_EQ(Lengths(File(10'000'019), 0), (Bytes{1703936, 1703936, 1676947, 1638400, 1638400,
                                                 1638400, 1703936, 1703936, 1703936}));
  EXPECT_EQ(Lengths(File(10'007), 0), (Bytes{10007, 0, 0, 0, 0, 0, 10007, 10007, 10007}));
  EXPECT_EQ(Lengths(File(6 * kQfsChunkBytes), 0), Bytes(9, kQfsChunkBytes));
  EXPECT_EQ(Lengths(File(6 * kQfsChunkBytes), 1), Bytes(9, 0));
}

// By writing a file byte by byte, with a group of cells of 4096 bytes.
TEST(QfsChunk, LengthsAreThoseOfRoundRobin) {
  for (const uint64_t bytes : {1, 4095, 4096, 4097, 8192, 12287, 12288, 12289, 50'000}) {
    const QfsFile file = File(bytes, 3, 4096);
    ASSERT_TRUE(file.Validate().ok());
    std::vector<uint64_t> lengths(6, 0);
    for (uint64_t at = 0; at < bytes; ++at) ++lengths[at / 4096 % 3];
    std::fill(lengths.begin() + 3, lengths.end(), lengths[0]);
    EXPECT_EQ(Lengths(file, 0), lengths) << bytes;
  }
}

TEST(QfsChunk, GroupsFollowEachOther) {
  const QfsFile file = File(6 * kQfsChunkBytes + 1);
  EXPECT_EQ(file.groups(), 2u);
  EXPECT_EQ(Lengths(file, 1), (std::vector<uint64_t>{1, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(file.GroupAddress(1), 9 * kQfsChunkBytes);
  EXPECT_EQ(file.StripeId(1), "qfs.5.1");
  const QfsPlace place{file, {5, 70000, 1}, 15 * kQfsChunkBytes};
  EXPECT_EQ(place.group(), 1u);
  EXPECT_EQ(place.index(), 6);
  EXPECT_EQ(place.bytes(), 1u);
  EXPECT_TRUE(place.Validate().ok());
}

TEST(QfsChunk, NamesAreReadAsTheyAreWritten) {
  EXPECT_EQ((QfsChunkId{5, 65539, 1}.Name()), "qfs.5.65539.1");
  EXPECT_EQ(ParseQfsChunk("qfs.5.65539.1").value(), (QfsChunkId{5, 65539, 1}));
  EXPECT_EQ(QfsChunkOfFile("5.65539.0"), (QfsChunkId{5, 65539, 0}));
  for (const char* name :
       {"", "qfs", "qfs.", "qfs.5.65539", "qfs.5.65539.1.2", "5.65539.1", "qfs.05.65539.1",
        "qfs.5.65539.-1", "qfs.0.65539.1", "qfs.5.0.1", "qfs.-5.65539.1", "qfs.5.65539.1 ",
        "qfs.5.65539.99999999999999999999", "qfs.5..1", "QFS.5.65539.1", "qfs.5.65539.+1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseQfsChunk(name).status())) << name;
  }
}

TEST(QfsChunk, FilesThatQfsDoesNotHaveAreRefused) {
  const auto refused = [](void (*change)(QfsFile*), const std::string& why) {
    QfsFile file = File(1000);
    change(&file);
    const absl::Status status = file.Validate();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refused([](QfsFile* f) { f->file = 0; }, "file id");
  refused([](QfsFile* f) { f->bytes = 0; }, "0 bytes");
  refused([](QfsFile* f) { f->bytes = UINT64_MAX; }, "out of range");
  refused([](QfsFile* f) { f->striper = 1; }, "striper type 1");
  refused([](QfsFile* f) { f->striper = 4; }, "striper type 4");
  refused([](QfsFile* f) { f->data = 65; }, "65 data");
  refused([](QfsFile* f) { f->parity = 0; }, "0 recovery");
  refused([](QfsFile* f) { f->parity = 2; }, "2 recovery");
  refused([](QfsFile* f) { f->striper = 3, f->data = 5; }, "5 data");
  refused([](QfsFile* f) { f->cell_bytes = 0; }, "cell");
  refused([](QfsFile* f) { f->cell_bytes = 4097; }, "cell");
  refused([](QfsFile* f) { f->cell_bytes = 3 * 4096; }, "divides 64 MiB");
  refused([](QfsFile* f) { f->cell_bytes = 2 * kQfsChunkBytes; }, "cell");
}

TEST(QfsChunk, AClaimSurvivesTheTrip) {
  const QfsPlace place{File(10'000'019), {5, 65539, 3}, 2 * kQfsChunkBytes};
  EXPECT_EQ(QfsPlace::OfClaim(place.Claim()).value(), place);
  EXPECT_EQ(place.Claim(),
            "file 5\nchunk 65539\nversion 3\nchunk-offset 134217728\nfile-size 10000019\n"
            "striper 2\ndata 6\nparity 3\ncell 65536\n");
  const std::string claim = place.Claim();
  for (size_t end = 0; end < claim.size(); ++end) {
    EXPECT_FALSE(QfsPlace::OfClaim(claim.substr(0, end)).ok()) << end;
  }
  EXPECT_FALSE(QfsPlace::OfClaim(claim + "x 1\n").ok());
  QfsPlace other = place;
  EXPECT_EQ(DifferenceOf(place, other), "");
  other.file.cell_bytes = 4096;
  EXPECT_EQ(DifferenceOf(place, other), "cell is 65536 and not 4096");
}

TEST(QfsChunk, PlacesThatNoChunkHasAreRefused) {
  QfsPlace place{File(10'007), {5, 65539, 3}, 0};
  EXPECT_TRUE(place.Validate().ok());
  place.address = 1;
  EXPECT_THAT(std::string(place.Validate().message()), HasSubstr("multiple of 64 MiB"));
  place.address = kQfsChunkBytes;
  EXPECT_THAT(std::string(place.Validate().message()), HasSubstr("behind the end"));
  place.address = 9 * kQfsChunkBytes;
  EXPECT_THAT(std::string(place.Validate().message()), HasSubstr("behind the end"));
  place.address = 0;
  place.id.file = 6;
  EXPECT_FALSE(place.Validate().ok());
}

TEST(QfsChunk, StorageIds) {
  EXPECT_EQ(QfsStorageId("10.0.0.7:22000").value(), "qfs.10.0.0.7_22000");
  EXPECT_TRUE(IsQfsStorageId("qfs.10.0.0.7_22000"));
  EXPECT_FALSE(IsQfsStorageId("c8b9e6e2-0000-4000-8000-000000000001"));
  for (const char* text :
       {"", ":1", "host", "host:", "host:0", "host:65536", "host:07", "::1:5", "a/b:1"}) {
    EXPECT_FALSE(QfsStorageId(text).ok()) << text;
  }
}

}  // namespace
}  // namespace ecpipe::qfs_chunk_test
