// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/qfs/metaserver_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::metaserver_wire_test {
namespace {

using ::testing::HasSubstr;

// As a metaserver sent them.
const std::string kPlaces =
    "0 65539 1 1 127.0.0.1 22001 67108864 65540 1 1 127.0.0.1 22004 134217728 65541 1 0 ";
const std::string kLayout =
    "OK\r\nCseq: 1\r\nStatus: 0\r\nFile-size: 402653184\r\nNum-chunks: 3\r\nContent-length: " +
    std::to_string(kPlaces.size()) + "\r\n\r\n" + kPlaces;

absl::StatusOr<MetaAnswer> Parsed(const std::string& bytes, size_t step, uint64_t sequence = 1) {
  MetaAnswerParser parser(sequence);
  for (size_t at = 0; at < bytes.size(); at += step) {
    const auto complete = parser.Add(std::string_view(bytes).substr(at, step));
    if (!complete.ok()) return complete.status();
    if (*complete) return parser.answer();
  }
  return absl::OutOfRangeError("incomplete");
}

TEST(MetaServerWire, WritesRequestsAsTheTranscriptHasThem) {
  EXPECT_EQ(MetaRequest("GETLAYOUT", 1, {{"File-handle", "5"}, {"Max-chunks", "9"}}),
            "GETLAYOUT\r\nCseq: 1\r\nVersion: KFS/1.0\r\nClient-Protocol-Version: 116\r\n"
            "UserId: 0\r\nGroupId: 0\r\nFile-handle: 5\r\nMax-chunks: 9\r\n\r\n");
}

TEST(MetaServerWire, ReadsAnAnswerInPiecesOfAnySize) {
  for (const size_t step : {1, 7, 64, 1000}) {
    const auto answer = Parsed(kLayout, step);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->Number("File-size").value(), 402653184);
    const auto layout = ParseQfsLayout(answer->content);
    ASSERT_TRUE(layout.ok()) << layout.status();
    ASSERT_EQ(layout->size(), 3u);
    EXPECT_EQ((*layout)[1], (QfsLayoutChunk{67108864, 65540, 1, {"127.0.0.1:22004"}}));
    EXPECT_TRUE((*layout)[2].servers.empty()) << "lost";
  }
}

TEST(MetaServerWire, RefusesWhatIsNoAnswer) {
  for (const std::string& bytes :
       {std::string("HTTP/1.1 200 OK\r\n\r\n"), std::string("OK\r\nStatus: 0\r\n\r\n"),
        std::string("OK\r\nCseq: 2\r\nStatus: 0\r\n\r\n"), std::string("OK\r\nCseq 1\r\n\r\n"),
        std::string("OK\r\nCseq: x\r\n\r\n"),
        std::string("OK\r\nCseq: 1\r\nContent-length: -1\r\n\r\n"),
        std::string("OK\r\nCseq: 1\r\nContent-length: 1\r\n\r\nab")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Parsed(bytes, bytes.size()).status())) << bytes;
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Parsed(std::string(70'000, 'x'), 1000).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      Parsed("OK\r\nCseq: 1\r\nContent-length: 1048577\r\n\r\n", 100).status()));
}

TEST(MetaServerWire, ErrorsKeepTheirMeaning) {
  const auto status = [](const std::string& number) {
    MetaAnswer answer;
    answer.fields = {{"Status", number}, {"Status-message", "why"}};
    return StatusOfAnswer(answer, "chunk 7");
  };
  EXPECT_TRUE(status("0").ok());
  EXPECT_TRUE(absl::IsNotFound(status("-2")));
  EXPECT_TRUE(absl::IsUnavailable(status("-113")));
  EXPECT_TRUE(absl::IsFailedPrecondition(status("-13")));
  EXPECT_THAT(std::string(status("-13").message()), HasSubstr("chunk 7 with status -13: why"));
  EXPECT_TRUE(absl::IsInvalidArgument(status("x")));
}

TEST(MetaServerWire, RefusesLayoutsThatAreNone) {
  for (const char* content :
       {"0", "0 65539", "0 65539 1", "0 65539 1 1", "0 65539 1 1 host", "0 65539 1 1 host 0",
        "0 65539 1 1 host 65536", "0 65539 1 65 h 1", "0 65539 1 -1", "-1 65539 1 0", "0 0 1 0",
        "0 65539 -1 0", "x 65539 1 0", "0 65539 1 0 0 65540 1 0", "67108864 1 1 0 0 2 1 0",
        "99999999999999999999 1 1 0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseQfsLayout(content).status())) << content;
  }
  EXPECT_TRUE(ParseQfsLayout("").value().empty());
  EXPECT_EQ(ParseQfsLayout(" 0 65539 1 2 a 1\r\n b 2 ").value()[0].servers,
            (std::vector<std::string>{"a:1", "b:2"}));
}

TEST(MetaServerWire, FilesWithoutStripesCannotBeRepaired) {
  MetaAnswer answer;
  answer.fields = {{"File-handle", "5"}, {"File-size", "1000"},         {"Striper-type", "2"},
                   {"Num-stripes", "6"}, {"Num-recovery-stripes", "3"}, {"Stripe-size", "65536"}};
  EXPECT_EQ(QfsFileOf(answer).value(), (QfsFile{5, 1000, 2, 6, 3, 65536}));
  answer.fields["Striper-type"] = "1";
  EXPECT_TRUE(absl::IsFailedPrecondition(QfsFileOf(answer).status()));
  answer.fields.erase("Stripe-size");
  EXPECT_TRUE(absl::IsInvalidArgument(QfsFileOf(answer).status()));
}

}  // namespace
}  // namespace ecpipe::metaserver_wire_test
