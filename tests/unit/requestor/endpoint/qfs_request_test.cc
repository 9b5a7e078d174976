// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/systems/qfs_chunk.h"
#include "requestor/endpoint/endpoint_wire.h"

namespace ecpipe::qfs_request_test {
namespace {

using ::testing::HasSubstr;

// docs/wire.md has the same lines, and the header below.
const char* const kRequest =
    "store qfs\nfile 5\nchunk 65541\nversion 1\nchunk-offset 134217728\nfile-size 402653184\n"
    "striper 2\ndata 6\nparity 3\ncell 65536\noffset 0\nbytes 1048576\ntimeout-ms 5000\n"
    "background 1\n";

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string With(const std::string& line, const std::string& instead) {
  std::string text = kRequest;
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, line.size(), instead);
}

TEST(QfsRequest, TheFrameIsAsTheDocumentSays) {
  const uint8_t dump[] = {0x45, 0x43, 0x50, 0x52, 0x01, 0x01, 0x00, 0x00,
                          0xab, 0x00, 0x00, 0x00, 0x64, 0x60, 0xfa, 0x96};
  const auto header = EncodeEndpointHeader(EndpointFrame::kRepair, Bytes(kRequest));
  EXPECT_TRUE(std::equal(header.begin(), header.end(), std::begin(dump), std::end(dump)));
}

TEST(QfsRequest, NamesTheChunkAndSaysWhatIsKnownOfIt) {
  const auto request = ParseEndpointRequest(kRequest);
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->targets.size(), 1u);
  EXPECT_EQ(request->targets[0].block_id, "qfs.5.65541.1");
  EXPECT_EQ(request->targets[0].index, 2);
  EXPECT_EQ(request->bytes(), 1048576u);
  EXPECT_EQ(request->timeout, std::chrono::seconds(5));
  EXPECT_TRUE(request->background);
  EXPECT_FALSE(request->facts);
  EXPECT_EQ(QfsPlace::OfClaim(request->claim).value(),
            (QfsPlace{{5, 402653184, 2, 6, 3, 65536}, {5, 65541, 1}, 134217728}));
}

TEST(QfsRequest, ARangeIsWithinTheChunkByTheSizeFormula) {
  const std::string small =
      "store qfs\nfile 5\nchunk 65541\nversion 1\nchunk-offset 134217728\nfile-size 10000019\n"
      "striper 2\ndata 6\nparity 3\ncell 65536\n";
  EXPECT_TRUE(ParseEndpointRequest(small + "offset 0\nbytes 1676947\n").ok());
  EXPECT_TRUE(ParseEndpointRequest(small + "offset 1676946\nbytes 1\n").ok());
  for (const char* range :
       {"offset 0\nbytes 1676948\n", "offset 1676947\nbytes 1\n", "offset 0\nbytes 0\n"}) {
    const absl::Status status = ParseEndpointRequest(small + range).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("within the 1676947 bytes of block 2"));
  }
}

TEST(QfsRequest, RefusesWhatIsNotExactlyARequest) {
  const std::pair<std::string, std::string> cases[] = {
      {With("version 1\n", ""), "'version' is missing"},
      {With("file 5", "file 0"), "file id"},
      {With("file 5", "file -5"), "file id"},
      {With("chunk 65541", "chunk 065541"), "'chunk'"},
      {With("version 1", "version -1"), "not one of file"},
      {With("chunk-offset 134217728", "chunk-offset 134217729"), "multiple of 64 MiB"},
      {With("chunk-offset 134217728", "chunk-offset 603979776"), "behind the end"},
      {With("file-size 402653184", "file-size 0"), "0 bytes"},
      {With("striper 2", "striper 1"), "striper type 1"},
      {With("striper 2\ndata 6", "striper 3\ndata 7"), "7 data"},
      {With("parity 3", "parity 2"), "2 recovery"},
      {With("cell 65536", "cell 65537"), "cell"},
      {With("offset 0\nbytes", "target 2\noffset 0\nbytes"), "'target' is not a known key"},
      {std::string(kRequest) + "source 1 qfs.h_1\n", "'source' is not a known key"},
      {With("bytes 1048576", "bytes 1 2"), "'bytes'"},
  };
  for (const auto& [text, why] : cases) {
    const absl::Status status = ParseEndpointRequest(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST(QfsRequest, TheChecksumsOfChunksAreTold) {
  EXPECT_EQ(EndpointHeaderText({{2, 7}}, {ChecksumKind::Type::kAdler32, 65536}, 255, {}),
            "bytes 7\nchecksum adler32 65536\nrepair 00000000000000ff\n");
}

}  // namespace
}  // namespace ecpipe::qfs_request_test
