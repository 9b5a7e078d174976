// SPDX-License-Identifier: Apache-2.0
// The pieces of libecpipe_qfs.so, each by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "shim/chunk_size.h"
#include "shim/crc32c.h"
#include "shim/frame.h"
#include "shim/settings.h"

namespace ecpipe_qfs::parts_test {
namespace {

using ::testing::HasSubstr;

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

uint32_t BitByBit(const std::vector<uint8_t>& bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, IsThatOfTheRfc) {
  const std::vector<uint8_t> digits = Bytes("123456789");
  EXPECT_EQ(Crc32c(digits.data(), digits.size()), 0xe3069283u);
  const std::vector<uint8_t> zeros(32, 0);
  EXPECT_EQ(Crc32c(zeros.data(), zeros.size()), 0x8a9136aau);
  EXPECT_EQ(Crc32c(nullptr, 0), 0u);
}

TEST(Crc32c, BothWaysAgreeAtEachLengthAndAlignment) {
  std::vector<uint8_t> bytes(300);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 131 + 7);
  for (size_t begin = 0; begin < 9; ++begin) {
    for (size_t count = 0; begin + count <= bytes.size(); ++count) {
      const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
      const uint32_t expected = BitByBit({first, first + static_cast<std::ptrdiff_t>(count)});
      ASSERT_EQ(Crc32cByTable(bytes.data() + begin, count), expected) << begin << " " << count;
      if (Crc32cInstruction()) {
        ASSERT_EQ(Crc32cByInstruction(bytes.data() + begin, count), expected);
      }
    }
  }
}

ecpipe_qfs_chunk ChunkOf(int64_t file_size, int64_t slot, int64_t cell = 65536) {
  return {sizeof(ecpipe_qfs_chunk), 5, 65541, 1, slot << 26, file_size, cell, 2, 6, 3, 0, 0, 0};
}

// The lengths that QFS itself gave the chunks of these files.
TEST(ChunkSize, IsThatOfRealFiles) {
  const std::vector<int64_t> lengths = {1703936, 1703936, 1676947, 1638400, 1638400,
                                        1638400, 1703936, 1703936, 1703936};
  for (size_t slot = 0; slot < lengths.size(); ++slot) {
    EXPECT_EQ(ChunkBytes(ChunkOf(10000019, static_cast<int64_t>(slot))), lengths[slot]) << slot;
  }
  const std::vector<int64_t> small = {10007, 0, 0, 0, 0, 0, 10007, 10007, 10007};
  for (size_t slot = 0; slot < small.size(); ++slot) {
    EXPECT_EQ(ChunkBytes(ChunkOf(10007, static_cast<int64_t>(slot))), small[slot]) << slot;
  }
  for (int64_t slot = 0; slot < 9; ++slot) {
    EXPECT_EQ(ChunkBytes(ChunkOf(int64_t{384} << 20, slot)), int64_t{64} << 20);
  }
}

// Each byte of the file is in one data chunk: those of a group add up, and a parity is as long as
// the longest.
TEST(ChunkSize, DataChunksAddUpToTheFile) {
  for (const int64_t cell : {4096, 65536, 1 << 20}) {
    for (const int64_t size : {int64_t{1}, cell - 1, cell, cell + 1, 6 * cell, 7 * cell + 5,
                               (int64_t{384} << 20) - 1, (int64_t{384} << 20) + 6 * cell + 9}) {
      int64_t sum = 0;
      for (int64_t group = 0; group < 3; ++group) {
        int64_t longest = 0;
        for (int64_t stripe = 0; stripe < 6; ++stripe) {
          const int64_t bytes = ChunkBytes(ChunkOf(size, group * 9 + stripe, cell));
          sum += bytes;
          longest = std::max(longest, bytes);
        }
        EXPECT_EQ(ChunkBytes(ChunkOf(size, group * 9 + 8, cell)), longest);
      }
      EXPECT_EQ(sum, size) << cell;
    }
  }
}

TEST(ChunkSize, WhatQfsCannotHaveIsRefused) {
  const auto refused = [](auto change) {
    ecpipe_qfs_chunk chunk = ChunkOf(10000019, 2);
    change(&chunk);
    int64_t bytes = 0;
    return RangeBytes(chunk, &bytes).code;
  };
  EXPECT_EQ(refused([](ecpipe_qfs_chunk*) {}), ECPIPE_QFS_OK);
  const int bad = ECPIPE_QFS_INVALID_ARGUMENT;
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->striper_type = 1; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->striper_type = 4; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->data_stripes = 0; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->data_stripes = 65; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->recovery_stripes = 0; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->stripe_size = 6000; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->stripe_size = 3 * 4096; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->chunk_offset = 1; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->chunk_offset = INT64_MIN; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->file_size = -1; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->file_size = INT64_MAX; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->chunk_version = -3; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->offset = 1676947; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->bytes = 1676948; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk) { chunk->file_size = 65536; }),
            ECPIPE_QFS_FAILED_PRECONDITION);
}

TEST(Frame, IsThatOfTheProtocol) {
  // The dump in docs/wire.md, but of the only target.
  const std::vector<uint8_t> hello = Bytes("hello");
  const FrameHeaderBytes expected = {0x45, 0x43, 0x50, 0x52, 0x01, 0x03, 0x00, 0x00,
                                     0x05, 0x00, 0x00, 0x00, 0x4c, 0xbb, 0x71, 0x9a};
  EXPECT_EQ(EncodeFrameHeader(FrameType::kData, hello.data(), hello.size()), expected);
  FrameHeader header;
  ASSERT_TRUE(DecodeFrameHeader(expected, &header).ok());
  EXPECT_EQ(header.bytes, 5u);
  EXPECT_TRUE(CheckPayload(header, hello.data()).ok());
}

TEST(Frame, EachByteOfAHeaderCounts) {
  const std::vector<uint8_t> hello = Bytes("hello");
  const FrameHeaderBytes good = EncodeFrameHeader(FrameType::kData, hello.data(), hello.size());
  for (size_t i = 0; i < good.size(); ++i) {
    FrameHeaderBytes bad = good;
    bad[i] ^= 0x80;
    FrameHeader header;
    const Failure refused = DecodeFrameHeader(bad, &header);
    const bool length = i == 8 || i == 9;  // of the limit's half
    EXPECT_TRUE(refused.code == ECPIPE_QFS_DATA_LOSS || length ||
                CheckPayload(header, hello.data()).code == ECPIPE_QFS_DATA_LOSS)
        << i;
  }
}

TEST(Frame, AnotherVersionOfTheProtocolIsNamed) {
  FrameHeaderBytes newer = EncodeFrameHeader(FrameType::kData, nullptr, 0);
  newer[4] = 2;
  FrameHeader header;
  const Failure refused = DecodeFrameHeader(newer, &header);
  EXPECT_EQ(refused.code, ECPIPE_QFS_DATA_LOSS);
  EXPECT_THAT(refused.message,
              HasSubstr("the endpoint speaks protocol version 2. Compare the versions"));
}

TEST(Frame, ARequestSaysWhatTheProtocolWants) {
  Settings settings;
  settings.scheme = "rp";
  EXPECT_EQ(RepairText(ChunkOf(10000019, 2), 1676947, settings),
            "store qfs\nfile 5\nchunk 65541\nversion 1\nchunk-offset 134217728\n"
            "file-size 10000019\nstriper 2\ndata 6\nparity 3\ncell 65536\noffset 0\n"
            "bytes 1676947\ntimeout-ms 10000\nscheme rp\nclient qfs\nbackground 1\n");
}

TEST(Frame, ARequestShowsTheCookieThatTheFileHasNow) {
  const std::string path = testing::TempDir() + "ecpipe-cookie-" + std::to_string(::getpid());
  Settings settings;
  const auto shows = [&] { return RepairText(ChunkOf(10000019, 2), 1, settings).find("cookie"); };
  settings.cookie = path;
  EXPECT_EQ(shows(), std::string::npos) << "there is no file yet";
  std::ofstream(path) << "not a cookie, though it is as long as the one of an endpoint is .....\n";
  EXPECT_EQ(shows(), std::string::npos);
  const std::string secret(64, 'a');
  std::ofstream(path) << secret << "\n";
  EXPECT_NE(RepairText(ChunkOf(10000019, 2), 1, settings).find("\ncookie " + secret + "\n"),
            std::string::npos);
  ::unlink(path.c_str());
}

TEST(Frame, AnErrorKeepsItsCode) {
  const Failure failure = FailureOfError("code UNAVAILABLE\nmessage no coordinator\n");
  EXPECT_EQ(failure.code, ECPIPE_QFS_UNAVAILABLE);
  EXPECT_THAT(failure.message, HasSubstr("no coordinator"));
  EXPECT_EQ(FailureOfError("code DATA_LOSS\n").code, ECPIPE_QFS_DATA_LOSS);
  EXPECT_EQ(FailureOfError("code FAILED_PRECONDITION\n").code, ECPIPE_QFS_FAILED_PRECONDITION);
  EXPECT_EQ(FailureOfError("code NEW\n").code, ECPIPE_QFS_UNKNOWN);
  EXPECT_EQ(FailureOfError("code OK\n").code, ECPIPE_QFS_UNKNOWN);  // an error is none
  EXPECT_EQ(FailureOfError("").code, ECPIPE_QFS_UNKNOWN);
}

std::string Sample() {
  std::ifstream file(ECPIPE_QFS_SAMPLE);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(SettingsFile, TheSampleHasTheDefaults) {
  Settings settings;
  ASSERT_EQ(ParseSettings(Sample(), "sample", &settings).message, "");
  const Settings defaults;
  EXPECT_EQ(settings.unix_path, "/run/ecpipe/endpoint.sock");
  EXPECT_EQ(settings.timeout_ms, defaults.timeout_ms);
  EXPECT_EQ(settings.stall_ms, defaults.stall_ms);
  EXPECT_EQ(settings.retry_ms, defaults.retry_ms);
  EXPECT_EQ(settings.client, defaults.client);
  EXPECT_EQ(settings.background, defaults.background);
}

TEST(SettingsFile, EachKeyOfTheSampleThatIsNotInForceIsKnown) {
  std::stringstream lines(Sample());
  int keys = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t key_end = line.find(' ', 2);
    if (line.rfind("# ", 0) != 0 || key_end == std::string::npos) continue;
    const std::string key = line.substr(2, key_end - 2);
    if (key != "scheme" && key != "insecure" && key.rfind("tls-", 0) != 0) continue;
    ++keys;
    Settings settings;
    const Failure failure =
        ParseSettings("endpoint tcp:127.0.0.1:1\n" + line.substr(2), "file", &settings);
    EXPECT_THAT(failure.message, ::testing::Not(HasSubstr("is not a known key")));
  }
  EXPECT_EQ(keys, 5);
}

TEST(SettingsFile, MistakesAreNamedWithTheirLine) {
  const auto said = [](const std::string& text) {
    Settings settings;
    const Failure failure = ParseSettings(text, "file", &settings);
    EXPECT_EQ(failure.code, ECPIPE_QFS_INVALID_ARGUMENT) << text;
    return failure.message;
  };
  EXPECT_THAT(said(""), HasSubstr("'endpoint' is missing"));
  EXPECT_THAT(said("# a\nendpoints unix:/a\n"), HasSubstr("file:2: 'endpoints' is not a known"));
  EXPECT_THAT(said("endpoint unix:/a\nendpoint unix:/b\n"), HasSubstr("file:2: 'endpoint' comes"));
  EXPECT_THAT(said("endpoint\n"), HasSubstr("has no value"));
  EXPECT_THAT(said("endpoint unix:a\n"), HasSubstr("unix:/PATH"));
  EXPECT_THAT(said("endpoint unix:/" + std::string(107, 'a')), HasSubstr("107"));
  EXPECT_THAT(said("endpoint tcp:localhost:1\n"), HasSubstr("numeric"));
  EXPECT_THAT(said("endpoint tcp:127.0.0.1:65536\n"), HasSubstr("ADDRESS:PORT"));
  EXPECT_THAT(said("endpoint tcp:10.0.0.1:7713\n"), HasSubstr("TLS"));
  EXPECT_THAT(said("endpoint tcp:[2001:db8::1]:7713\n"), HasSubstr("TLS"));
  EXPECT_THAT(said("endpoint unix:/a\ntimeout-ms 0\n"), HasSubstr("1 to 600000"));
  EXPECT_THAT(said("endpoint unix:/a\nstall-ms 1s\n"), HasSubstr("file:2"));
  EXPECT_THAT(said("endpoint unix:/a\nbackground yes\n"), HasSubstr("0 or 1"));
  EXPECT_THAT(said("endpoint tcp:127.0.0.1:1\ntls-ca /ca\n"), HasSubstr("tls-key"));
  Settings settings;
  EXPECT_TRUE(ParseSettings("endpoint tcp:[::1]:7713", "file", &settings).ok());
  EXPECT_TRUE(ParseSettings("endpoint tcp:10.0.0.1:7713\ninsecure 1", "file", &settings).ok());
  EXPECT_EQ(LoadSettings("/nowhere/at/all", &settings).code, ECPIPE_QFS_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace ecpipe_qfs::parts_test
