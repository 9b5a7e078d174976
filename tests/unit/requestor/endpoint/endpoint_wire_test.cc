// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/requestor/endpoint/endpoint_client.h"

namespace ecpipe::endpoint_wire_test {
namespace {

using ::testing::HasSubstr;

const char* const kRequest =
    "store hdfs\npool BP-1-127.0.0.1-17\ngroup -9223372036854775792\nstamp 1001\n"
    "group-bytes 13300001\ncodec rs\ndata 6\nparity 3\ncell 1048576\ntarget 2\noffset 5\n"
    "bytes 2097147\nsource 0 dn-1\nsource 0 dn-2\nsource 8 dn-3\n";

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string With(const std::string& line, const std::string& instead, std::string text = kRequest) {
  const size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return text.replace(at, line.size(), instead);
}

TEST(EndpointWire, ReadsARequest) {
  const auto request = ParseEndpointRequest(kRequest);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->facts->stripe_id, "hdfs.BP-1-127.0.0.1-17.-9223372036854775792");
  EXPECT_EQ(request->targets[0].block_id, "BP-1-127.0.0.1-17.blk_-9223372036854775790_1001");
  EXPECT_EQ(request->facts->sources.size(), 3u);
  EXPECT_EQ(request->facts->sources[1], (StripeFacts::Source{0, "dn-2"}));
  ASSERT_EQ(request->targets.size(), 1u);
  EXPECT_EQ(request->targets[0].index, 2);
  EXPECT_EQ(request->offset, 5u);
  EXPECT_EQ(request->bytes(), 2097147u);
  EXPECT_EQ(request->timeout, std::chrono::seconds(2));
  const auto more = ParseEndpointRequest(std::string(kRequest) +
                                         "timeout-ms 50\nscheme rp\nclient a b c\nbackground 1\n");
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->timeout, std::chrono::milliseconds(50));
  EXPECT_EQ(more->scheme, "rp");
  EXPECT_EQ(more->client, "a b c");
  EXPECT_TRUE(more->background);
  EXPECT_FALSE(request->background);
}

// Block 0 and the parity blocks end in the third row, and block 4 in the second.
TEST(EndpointWire, ReadsSeveralTargetsWithRangesOfTheirOwnLength) {
  const auto request = ParseEndpointRequest(
      With("target 2", "target 0 4 8", With("bytes 2097147", "bytes 2814236 2097147 1")));
  ASSERT_TRUE(request.ok()) << request.status();
  ASSERT_EQ(request->targets.size(), 3u);
  EXPECT_EQ(request->targets[1].index, 4);
  EXPECT_EQ(request->targets[1].bytes, 2097147u);
  EXPECT_EQ(request->targets[2].bytes, 1u);
  EXPECT_EQ(request->bytes(), 2814236u);
}

TEST(EndpointWire, RefusesTargetsThatDoNotFit) {
  struct Case {
    std::string targets;
    std::string bytes;
    std::string why;
  };
  const Case cases[] = {
      {"0 1 2 3", "9 9 9 9", "more targets than the 3"},
      {"1 0", "9 9", "ascending"},
      {"1 1", "9 9", "ascending"},
      {"0 1", "9", "a number for each target"},
      {"0", "9 9", "a number for each target"},
      {"0 9", "9 9", "no block 9"},
      {"0 4", "9 2097148", "within the 2097152 bytes of block 4"},
      {"0 4", "9 0", "not within"},
      {"0  1", "9 9", "'target'"},
      {"0 1 ", "9 9", "'target'"},
      {" 0 1", "9 9", "'target'"},
      {"0 01", "9 9", "'target'"},
      {"0,1", "9 9", "'target'"},
      {"0 1", "9 x", "'bytes'"},
  };
  for (const auto& [targets, bytes, why] : cases) {
    const absl::Status status = ParseEndpointRequest(With("target 2", "target " + targets,
                                                          With("bytes 2097147", "bytes " + bytes)))
                                    .status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << targets;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << targets;
  }
}

TEST(EndpointWire, RefusesWhatIsNotExactlyARequest) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "missing"},
      {With("store hdfs\n", ""), "'store'"},
      {With("store hdfs", "store gfs"), "'store'"},
      {With("pool BP", "pool ../BP"), "pool"},
      {With("group -9223372036854775792", "group 5"), "group 5"},
      {With("stamp 1001", "stamp -1"), "'stamp'"},
      {With("stamp 1001", "stamp 01001"), "'stamp'"},
      {With("stamp 1001", "stamp  1001"), "'stamp'"},
      {With("data 6", "data 99999999999"), "'data'"},
      {With("data 6\n", "data 6\ndata 6\n"), "twice"},
      {With("codec rs\n", "codec rs-vandermonde\n"), "codec"},
      {With("parity 3\n", ""), "'parity' is missing"},
      {With("cell 1048576", "cell 0"), "cell"},
      {With("target 2", "target 9"), "no block 9"},
      {With("target 2", "target -1"), "no block -1"},
      {With("bytes 2097147", "bytes 2097148"), "not within"},
      {With("bytes 2097147", "bytes 0"), "not within"},
      {With("offset 5", "offset 18446744073709551615"), "not within"},
      {With("source 8 dn-3", "source dn-3"), "a source"},
      {With("source 8 dn-3", "source 8"), "a source"},
      {With("source 8 dn-3", "source 9 dn-3"), "block 9"},
      {With("source 8 dn-3", "source 8 dn/3"), "UUID"},
      {std::string(kRequest) + "colour red\n", "'colour'"},
      {std::string(kRequest) + "timeout-ms 0\n", "timeout-ms"},
      {std::string(kRequest) + "timeout-ms 600001\n", "timeout-ms"},
      {std::string(kRequest) + "background 2\n", "'background'"},
      {std::string(kRequest) + "client x", "no line end"},
      {std::string(kRequest) + "client\n", "a key followed by a value"},
      {std::string(kRequest) + " x\n", "a key followed by a value"},
      {std::string(kRequest) + "client \x80\n", "a key followed by a value"},
      {std::string(kRequest) + "client " + std::string(300, 'x') + "\n", "a value is longer than"},
  };
  for (const auto& [text, why] : cases) {
    const absl::Status status = ParseEndpointRequest(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  std::string many = kRequest;
  for (int i = 0; i < 129; ++i) many += "source 1 dn\n";
  EXPECT_THAT(std::string(ParseEndpointRequest(many).status().message()),
              HasSubstr("more than 128 sources"));
}

TEST(EndpointWire, FramesAreAsTheDocumentSays) {
  const std::string payload = "bytes 5\nattempts 1\n";
  const EndpointFrameHeaderBytes header = EncodeEndpointHeader(EndpointFrame::kEnd, Bytes(payload));
  EXPECT_EQ(std::string(header.begin(), header.end()) + payload,
            EndpointClient::FrameOf(4, payload));
  EXPECT_EQ(EndpointEndText({{0, 5}}, 1, {}), payload);
  const auto read = DecodeEndpointHeader(header);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->type, EndpointFrame::kEnd);
  EXPECT_TRUE(CheckEndpointPayload(*read, Bytes(payload)).ok());
  EXPECT_FALSE(CheckEndpointPayload(*read, Bytes("bytes 6\nattempts 1\n")).ok());
  EXPECT_FALSE(CheckEndpointPayload(*read, Bytes("bytes 5\n")).ok());
}

// The dump of docs/wire.md.
TEST(EndpointWire, ADataFrameNamesItsTarget) {
  const EndpointFrameHeaderBytes header =
      EncodeEndpointHeader(EndpointFrame::kData, Bytes("hello"), 1);
  const uint8_t dump[] = {0x45, 0x43, 0x50, 0x52, 0x01, 0x03, 0x01, 0x00,
                          0x05, 0x00, 0x00, 0x00, 0x4c, 0xbb, 0x71, 0x9a};
  EXPECT_TRUE(std::equal(header.begin(), header.end(), std::begin(dump), std::end(dump)));
  const auto read = DecodeEndpointHeader(header);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->target, 1);
}

TEST(EndpointWire, RefusesHeadersThatAreNone) {
  const std::string good = EndpointClient::FrameOf(1, "").substr(0, 16);
  EXPECT_TRUE(DecodeEndpointHeader(Bytes(good)).ok());
  for (const auto& [at, byte] :
       {std::pair(0, 'X'), {4, '\2'}, {5, '\0'}, {5, '\6'}, {6, '\1'}, {10, '\x10'}}) {
    std::string bad = good;
    bad[static_cast<size_t>(at)] = byte;
    EXPECT_TRUE(absl::IsInvalidArgument(DecodeEndpointHeader(Bytes(bad)).status())) << at;
  }
  EXPECT_FALSE(DecodeEndpointHeader(Bytes(good.substr(0, 15))).ok());
}

TEST(EndpointWire, Answers) {
  EXPECT_EQ(EndpointHeaderText({{2, 7}}, {ChecksumKind::Type::kCrc32, 512}, 255, {}),
            "bytes 7\nchecksum crc32 512\nrepair 00000000000000ff\n");
  EXPECT_EQ(EndpointHeaderText({{2, 7}, {8, 9}}, {ChecksumKind::Type::kCrc32, 512}, 255,
                               {{0, "dn-2"}, {8, "dn-3"}}),
            "bytes 7 9\nchecksum crc32 512\nrepair 00000000000000ff\ncorrupt 0 dn-2\n"
            "corrupt 8 dn-3\n");
  EXPECT_EQ(EndpointEndText({{2, 7}, {8, 9}}, 3, {{0, "dn-2"}}),
            "bytes 7 9\nattempts 3\ncorrupt 0 dn-2\n");
  EXPECT_EQ(EndpointErrorText(absl::UnavailableError("a\nb\xff")),
            "code UNAVAILABLE\nmessage a?b?\n");
  EXPECT_EQ(EndpointErrorText(absl::Status(absl::StatusCode::kNotFound, "")),
            "code NOT_FOUND\nmessage no reason is known\n");
  EXPECT_LT(EndpointErrorText(absl::InternalError(std::string(9999, 'x'))).size(), 1100u);
}

}  // namespace
}  // namespace ecpipe::endpoint_wire_test
