// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/file_coder.h"

#include <gmock/gmock.h>

#include <bit>

#include "base/bytes/sha256.h"
#include "codec/erasure_code.h"
#include "model/block_checksums.h"
#include "requestor/files/block_files.h"
#include "unit/codec/scalar_oracle.h"
#include "unit/requestor/files/coding_fixture.h"

namespace ecpipe::file_coder_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class FileCoder : public CodingFixture {
 protected:
  absl::Status EncodeError(const EncodeOptions& options) const {
    const std::set<std::string> before = Tree();
    const absl::Status status = EncodeFile(options).status();
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(Tree(), before) << "something was left behind";
    return status;
  }

  void ExpectDecodes(const Manifest& manifest, const Bytes& content) {
    const absl::Status decoded = Decode(manifest);
    ASSERT_TRUE(decoded.ok()) << decoded;
    ASSERT_EQ(Content(scratch_.File("decoded")), content);
    std::filesystem::remove(scratch_.File("decoded"));
  }
};

std::string HashOf(const std::string& bytes) {
  Sha256 sha256;
  sha256.Update({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return sha256.FinishHex();
}

TEST_F(FileCoder, EncodesAsDocumented) {
  const Bytes content = Noise(250);
  const Manifest manifest = Encoded(content, Options("rs(5,3)", 60));
  EXPECT_THAT(Tree(), ElementsAre("in", "out", "out/x-s00000-b00", "out/x-s00000-b01",
                                  "out/x-s00000-b02", "out/x-s00000-b03", "out/x-s00000-b04",
                                  "out/x-s00001-b00", "out/x-s00001-b01", "out/x-s00001-b02",
                                  "out/x-s00001-b03", "out/x-s00001-b04", "out/x.manifest.json"));
  EXPECT_EQ(ReadManifest(scratch_.File("out/x.manifest.json")).value(), manifest);
  EXPECT_EQ(manifest.name, "x");
  EXPECT_EQ(manifest.code, "rs-cauchy(5,3)");
  EXPECT_EQ(manifest.file_bytes, 250u);
  EXPECT_EQ(manifest.file_sha256, HashOf(content));
  // The data blocks are the file and zeros.
  Bytes data;
  for (size_t s = 0; s < 2; ++s) {
    for (size_t j = 0; j < 3; ++j) data += Content(Block(manifest, s, j));
  }
  EXPECT_EQ(data, content + Bytes(110, '\0'));
  for (size_t s = 0; s < 2; ++s) {
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(manifest.stripes[s].blocks[i].sha256, HashOf(Content(Block(manifest, s, i))));
    }
  }
}

TEST_F(FileCoder, WritesTheParityOfTheOracle) {
  const Manifest manifest = Encoded(Noise(400), Options("rs(9,6)", 70));
  std::vector<oracle::Block> data;
  for (size_t j = 0; j < 6; ++j) {
    const Bytes bytes = Content(Block(manifest, 0, j));
    data.emplace_back(bytes.begin(), bytes.end());
  }
  const auto stripe = oracle::Encode(oracle::CauchyRows(9, 6), data);
  for (size_t i = 0; i < 9; ++i) {
    const Bytes bytes = Content(Block(manifest, 0, i));
    EXPECT_EQ(oracle::Block(bytes.begin(), bytes.end()), stripe[i]) << i;
  }
}

TEST_F(FileCoder, DecodesFilesOfAllLengths) {
  int number = 0;
  for (const size_t bytes : {0u, 1u, 9u, 10u, 11u, 29u, 30u, 31u, 59u, 60u, 61u, 95u}) {
    EncodeOptions options = Options("rs(5,3)", 10);
    options.name = "f" + std::to_string(++number);
    const Bytes content = Noise(bytes);
    const Manifest manifest = Encoded(content, options);
    ASSERT_EQ(manifest.stripes.size(), (bytes + 29) / 30);
    ASSERT_NO_FATAL_FAILURE(ExpectDecodes(manifest, content)) << bytes;
    for (size_t s = 0; s < manifest.stripes.size(); ++s) {
      std::filesystem::remove(Block(manifest, s, s % 5));
      std::filesystem::remove(Block(manifest, s, (s + 1) % 5));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectDecodes(manifest, content)) << bytes << ", with losses";
  }
}

TEST_F(FileCoder, DecodesAfterEveryErasure) {
  const Bytes content = Noise(395);
  const Manifest manifest = Encoded(content, Options("rs(6,4)", 100));
  const std::filesystem::path kept = scratch_.File("kept");
  std::filesystem::rename(scratch_.File("out"), kept);
  for (unsigned mask = 1; mask < 1u << 6; ++mask) {
    if (std::popcount(mask) > 2) continue;
    std::filesystem::remove_all(scratch_.File("out"));
    std::filesystem::copy(kept, scratch_.File("out"));
    for (size_t i = 0; i < 6; ++i) {
      if ((mask >> i) & 1) std::filesystem::remove(Block(manifest, 0, i));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectDecodes(manifest, content)) << "mask " << mask;
  }
}

TEST_F(FileCoder, WorksInSeveralColumns) {
  const Bytes content = Noise(5'000'000);
  const Manifest manifest = Encoded(content, Options("rs(4,2)", 2'600'001));
  std::filesystem::remove(Block(manifest, 0, 0));
  Flip(Block(manifest, 0, 1), 2'600'000);
  ExpectDecodes(manifest, content);
}

TEST_F(FileCoder, TakesTheWidestStripe) {
  const Bytes content = Noise(223 * 40 - 3);
  const Manifest manifest = Encoded(content, Options("rs(255,223)", 40));
  for (size_t i = 0; i < 32; ++i) std::filesystem::remove(Block(manifest, 0, i * 7));
  ExpectDecodes(manifest, content);
}

TEST_F(FileCoder, PlacesBlocksOnNodesInTurn) {
  EncodeOptions options = Options("rs(3,2)", 10);
  options.nodes = {"n0", "n1", "n2", "n3"};
  const Bytes content = Noise(35);
  const Manifest manifest = Encoded(content, options);
  EXPECT_THAT(Tree(),
              IsSupersetOf({"out/n0/x-s00000-b00", "out/n1/x-s00000-b01", "out/n2/x-s00000-b02",
                            "out/n1/x-s00001-b00", "out/n2/x-s00001-b01", "out/n3/x-s00001-b02"}));
  EXPECT_EQ(manifest.stripes[1].blocks[2].node, "n3");
  ExpectDecodes(manifest, content);
  // Gathered into one directory, the blocks are found as well.
  std::filesystem::rename(scratch_.File("out/n1/x-s00000-b01"), scratch_.File("out/x-s00000-b01"));
  std::filesystem::remove(scratch_.File("out/n0/x-s00000-b00"));
  ExpectDecodes(manifest, content);
}

TEST_F(FileCoder, APlanIsWhatIsWrittenThenAndWritesNothing) {
  EncodeOptions options = Options("rs(3,2)", 10);
  options.nodes = {"n0", "n1", "n2"};
  const Bytes content = Noise(35);
  Put(scratch_.File("in"), content);
  const std::set<std::string> before = Tree();
  const absl::StatusOr<Manifest> plan = PlanEncoding(options);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(Tree(), before);
  const Manifest written = Encoded(content, options);
  ASSERT_EQ(plan->stripes.size(), written.stripes.size());
  for (size_t s = 0; s < written.stripes.size(); ++s) {
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(plan->stripes[s].blocks[i].block_id, written.stripes[s].blocks[i].block_id);
      EXPECT_EQ(plan->stripes[s].blocks[i].node, written.stripes[s].blocks[i].node);
    }
  }
  EXPECT_TRUE(absl::IsAlreadyExists(PlanEncoding(options).status()));
}

TEST_F(FileCoder, RefusesBadOptions) {
  Put(scratch_.File("in"), Noise(100));
  const auto error = [&](auto change) {
    EncodeOptions options = Options("rs(5,3)", 10);
    change(options);
    const absl::Status status = EncodeError(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error([](auto& o) { o.code = "rs(3,5)"; }), HasSubstr("1 <= k < n"));
  EXPECT_THAT(error([](auto& o) { o.block_bytes = 0; }), HasSubstr("block size"));
  EXPECT_THAT(error([](auto& o) { o.block_bytes = uint64_t{1} << 41; }), HasSubstr("block size"));
  EXPECT_THAT(error([](auto& o) { o.name = "a/b"; }), HasSubstr("the name"));
  EXPECT_THAT(error([](auto& o) { o.name = ""; }), HasSubstr("the name"));
  EXPECT_THAT(error([](auto& o) { o.name = std::string(250, 'x'); }), HasSubstr("the name"));
  EXPECT_THAT(error([](auto& o) { o.nodes = {"a", "b", "c", "d"}; }), HasSubstr("there are 4"));
  EXPECT_THAT(error([](auto& o) { o.nodes = {"a", "b", "c", "d", "a"}; }), HasSubstr("twice"));
  EXPECT_THAT(error([](auto& o) { o.nodes = {"a", "b", "c", "d", "../e"}; }),
              HasSubstr("node id '../e': not a valid id"));
}

TEST_F(FileCoder, RefusesMoreBlocksThanAManifestMayHave) {
  Put(scratch_.File("in"), "");
  std::filesystem::resize_file(scratch_.File("in"), 3'000'000);
  EXPECT_THAT(std::string(EncodeError(Options("rs(5,3)", 10)).message()),
              HasSubstr("use larger blocks"));
}

TEST_F(FileCoder, RefusesAnInputThatHasMoreThanItsSize) {
  EncodeOptions options = Options("rs(3,2)", 10);
  options.input_path = "/proc/version";
  for (const auto encode : {&EncodeFile, &PlanEncoding}) {
    const absl::Status status = encode(options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_NE(status.ToString().find("/proc/version has more than the 0 bytes"), std::string::npos)
        << status;
  }
  EXPECT_FALSE(std::filesystem::exists(options.output_dir));
}

TEST_F(FileCoder, NamesAnInputThatIsNotThere) {
  const absl::Status status = EncodeError(Options("rs(5,3)", 10));
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(scratch_.File("in")));
}

TEST_F(FileCoder, NeedsTheParentOfTheOutputDirectory) {
  Put(scratch_.File("in"), Noise(100));
  EncodeOptions options = Options("rs(5,3)", 10);
  options.output_dir = scratch_.File("missing/out");
  EXPECT_TRUE(absl::IsNotFound(EncodeError(options)));
}

TEST_F(FileCoder, NeverReplacesABlock) {
  Encoded(Noise(100), Options("rs(5,3)", 10));
  EXPECT_TRUE(absl::IsAlreadyExists(EncodeError(Options("rs(5,3)", 10))));
}

TEST_F(FileCoder, AFailureInALaterStripeTakesBackTheEarlierOnes) {
  Put(scratch_.File("in"), Noise(100));
  std::filesystem::create_directory(scratch_.File("out"));
  Put(scratch_.File("out/x-s00002-b04"), "in the way");
  EXPECT_TRUE(absl::IsAlreadyExists(EncodeError(Options("rs(5,3)", 10))));
  EXPECT_EQ(Content(scratch_.File("out/x-s00002-b04")), "in the way");
}

TEST_F(FileCoder, ChecksumFilesComeAndGoWithTheirBlocks) {
  EncodeOptions options = Options("rs(3,2)", 50);
  options.checksum_files = ChecksumFiles::kWrite;
  Put(scratch_.File("in"), Noise(200));
  std::filesystem::create_directory(scratch_.File("out"));
  Put(scratch_.File("out/x-s00001-b02"), "in the way");
  const std::set<std::string> before = Tree();
  EXPECT_TRUE(absl::IsAlreadyExists(EncodeError(options)));
  EXPECT_EQ(Tree(), before) << "a failure leaves none";
  std::filesystem::remove(scratch_.File("out/x-s00001-b02"));
  const Manifest manifest = Encoded(Noise(200), options);
  EXPECT_EQ(Tree().size(), 2u + 1 + 2 * 6) << "in, out, the manifest, and two files a block";
  for (const ManifestBlock& block : manifest.stripes[1].blocks) {
    UniqueFd file =
        OpenForReading(scratch_.File("out/" + ChecksumFileName(block.block_id))).value();
    const auto checksums = ChecksumFile::Open(std::move(file), block.block_id, 50);
    ASSERT_TRUE(checksums.ok()) << checksums.status();
    EXPECT_EQ(checksums->sha256(), block.sha256);
  }
  // One that is left over from a block that is gone must not condemn the next of its id.
  std::filesystem::remove(scratch_.File("out/x.manifest.json"));
  for (int i = 0; i < 6; ++i) std::filesystem::remove(Block(manifest, i / 3, i % 3));
  Encoded(Noise(199), Options("rs(3,2)", 50));
  EXPECT_EQ(Tree().size(), 2u + 1 + 6);
}

TEST_F(FileCoder, PassesOverDamagedBlocks) {
  const Bytes content = Noise(230);
  const Manifest manifest = Encoded(content, Options("rs(6,3)", 80));
  Flip(Block(manifest, 0, 0), 3);                                    // wrong checksum
  Put(Block(manifest, 0, 2), Content(Block(manifest, 0, 2)) + "x");  // wrong length
  Flip(Block(manifest, 0, 3), 79);  // found out only when it is to be used
  ExpectDecodes(manifest, content);
}

TEST_F(FileCoder, SaysWhatIsWrongWhenTooFewBlocksAreGood) {
  const Manifest manifest = Encoded(Noise(230), Options("rs(5,3)", 80));
  std::filesystem::remove(Block(manifest, 0, 0));
  Flip(Block(manifest, 0, 1), 0);
  Put(Block(manifest, 0, 4), "short");
  const absl::Status status = Decode(manifest);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  const std::string message(status.message());
  EXPECT_THAT(message, HasSubstr("stripe x-s00000: 2 survivors are not enough to rebuild"));
  EXPECT_THAT(message, HasSubstr("x-s00000-b00: missing"));
  EXPECT_THAT(message, HasSubstr("x-s00000-b01: wrong checksum"));
  EXPECT_THAT(message, HasSubstr("x-s00000-b04: wrong length"));
  EXPECT_THAT(message, Not(HasSubstr("x-s00000-b02")));
  EXPECT_THAT(Tree(), Not(testing::Contains("decoded")));
}

// The last data blocks of the last stripe are zeros, which need not be read to be known.
TEST_F(FileCoder, LostPaddingIsNoLoss) {
  const Bytes content = Noise(15);
  const Manifest manifest = Encoded(content, Options("rs(6,4)", 10));
  std::filesystem::remove(Block(manifest, 0, 2));
  std::filesystem::remove(Block(manifest, 0, 3));
  ExpectDecodes(manifest, content);
  std::filesystem::remove(Block(manifest, 0, 0));
  std::filesystem::remove(Block(manifest, 0, 1));
  ExpectDecodes(manifest, content);
}

TEST_F(FileCoder, TrustedBlocksStillHaveToMakeTheFile) {
  const Manifest manifest = Encoded(Noise(230), Options("rs(5,3)", 80));
  EXPECT_TRUE(Decode(manifest, BlockChecksums::kTrust).ok());
  std::filesystem::remove(scratch_.File("decoded"));
  Flip(Block(manifest, 0, 1), 5);
  const std::set<std::string> before = Tree();
  const absl::Status status = Decode(manifest, BlockChecksums::kTrust);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(manifest.file_sha256));
  EXPECT_EQ(Tree(), before);
}

TEST_F(FileCoder, AFailedDecodeKeepsAnOlderOutput) {
  const Manifest manifest = Encoded(Noise(230), Options("rs(5,3)", 80));
  Put(scratch_.File("decoded"), "older");
  for (const size_t block : {0u, 1u, 2u}) std::filesystem::remove(Block(manifest, 0, block));
  EXPECT_FALSE(Decode(manifest).ok());
  EXPECT_EQ(Content(scratch_.File("decoded")), "older");
}

TEST_F(FileCoder, TellsOfProgressInBytesOfTheFile) {
  for (const uint64_t file_bytes : {1u, 80u, 230u, 240u, 1000u}) {
    SCOPED_TRACE(file_bytes);
    Told encoding;
    EncodeOptions options = Options("rs(5,3)", 80);
    options.progress = encoding.Callback();
    const Manifest manifest = Encoded(Noise(file_bytes), options);
    encoding.ExpectReached(file_bytes);
    Told decoding;
    DecodeOptions decode{scratch_.File("out"), scratch_.File("decoded"), BlockChecksums::kVerify};
    decode.progress = decoding.Callback();
    EXPECT_TRUE(DecodeFile(manifest, decode).ok());
    decoding.ExpectReached(file_bytes);
    std::filesystem::remove_all(scratch_.File("out"));
  }
}

TEST_F(FileCoder, ProgressReachesItsTotalWhereBlocksAreRebuilt) {
  const Manifest manifest = Encoded(Noise(1000), Options("rs(5,3)", 80));
  std::filesystem::remove(Block(manifest, 0, 1));
  Flip(Block(manifest, 1, 0), 3);
  Flip(Block(manifest, 1, 2), 79);
  for (const BlockChecksums checksums : {BlockChecksums::kVerify, BlockChecksums::kTrust}) {
    Told told;
    const DecodeOptions options{scratch_.File("out"), scratch_.File("decoded"), checksums,
                                told.Callback()};
    EXPECT_EQ(DecodeFile(manifest, options).ok(), checksums == BlockChecksums::kVerify);
    told.ExpectReached(1000);
  }
}

TEST_F(FileCoder, HasNoProgressToTellOfAnEmptyFile) {
  Told told;
  EncodeOptions options = Options("rs(5,3)", 80);
  options.progress = told.Callback();
  const Manifest manifest = Encoded("", options);
  DecodeOptions decode{scratch_.File("out"), scratch_.File("decoded"), BlockChecksums::kVerify};
  decode.progress = told.Callback();
  EXPECT_TRUE(DecodeFile(manifest, decode).ok());
  EXPECT_EQ(told.calls(), 0);
}

TEST_F(FileCoder, RefusesAManifestThatDoesNotHoldTogether) {
  Manifest manifest = Encoded(Noise(230), Options("rs(5,3)", 80));
  manifest.stripes[0].blocks.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(manifest)));
}

TEST(FindBlock, PrefersTheDirectoryOfTheNode) {
  const ScratchDirectory scratch;
  const std::string root = scratch.File("blocks");
  std::filesystem::create_directories(root + "/n1");
  std::ofstream(root + "/n1/b").close();
  std::ofstream(root + "/b").close();
  EXPECT_EQ(FindBlock(root, "n1", "b").value(), root + "/n1/b");
  EXPECT_EQ(FindBlock(root, "n2", "b").value(), root + "/b");
  EXPECT_EQ(FindBlock(root, "", "b").value(), root + "/b");
  EXPECT_TRUE(absl::IsNotFound(FindBlock(root, "n1", "c").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FindBlock(root, "..", "b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(FindBlock(root, "n1", "../n1/b").status()));
}

}  // namespace
}  // namespace ecpipe::file_coder_test
