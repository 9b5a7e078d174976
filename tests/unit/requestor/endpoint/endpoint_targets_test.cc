// SPDX-License-Identifier: Apache-2.0
// What an endpoint sends of several blocks of a group, and of corrupt sources.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "unit/requestor/endpoint/endpoint_fixture.h"

namespace ecpipe::endpoint_targets_test {
namespace {

// Which target's bytes each DATA frame has, and how many, up to the END; checks each byte.
std::vector<std::pair<int, size_t>> Rounds(EndpointClient* client, size_t targets) {
  std::vector<std::pair<int, size_t>> rounds;
  std::vector<size_t> at(targets);
  while (true) {
    const EndpointClient::Frame frame = client->Receive();
    if (frame.type != 3 || frame.target >= static_cast<int>(targets)) {
      EXPECT_EQ(frame.type, 4);
      return rounds;
    }
    rounds.emplace_back(frame.target, frame.payload.size());
    size_t& offset = at[static_cast<size_t>(frame.target)];
    for (const char c : frame.payload) {
      EXPECT_EQ(static_cast<uint8_t>(c),
                static_cast<uint8_t>(offset++ + static_cast<size_t>(frame.target)));
    }
  }
}

TEST_F(EndpointTest, SendsSeveralTargetsInRoundsAsFarAsEachReaches) {
  Start();
  script_.bytes = 250;
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(RequestOf("1 2", "150 250")));
  EXPECT_EQ(client.Receive().payload,
            "bytes 150 250\nchecksum crc32c 512\nrepair 0000000000000abc\n");
  EXPECT_EQ(Rounds(&client, 2), (std::vector<std::pair<int, size_t>>{
                                    {0, 100}, {1, 100}, {0, 50}, {1, 100}, {1, 50}}));
  EXPECT_EQ(Settled().bytes_sent, 400u);
}

TEST_F(EndpointTest, ARoundHasOneFrameOfEachTarget) {
  Start();
  const uint64_t bytes = 2u * kMaxEndpointDataBytes + 7;
  script_.bytes = script_.step = bytes;
  EndpointClient client(endpoint_->address());
  const std::string block = std::to_string(bytes);
  const std::string group = std::to_string(3 * bytes);
  ASSERT_TRUE(client.Send(EndpointClient::FrameOf(
      1, "store hdfs\npool BP-1\ngroup -16\nstamp 7\ngroup-bytes " + group +
             "\ncodec rs\ndata 3\nparity 2\ncell " + block + "\noffset 0\ntarget 0 3\nbytes " +
             block + " " + block + "\n")));
  EXPECT_EQ(client.Receive().type, 2);
  const size_t most = kMaxEndpointDataBytes;
  EXPECT_EQ(Rounds(&client, 2), (std::vector<std::pair<int, size_t>>{
                                    {0, most}, {1, most}, {0, most}, {1, most}, {0, 7}, {1, 7}}));
}

TEST_F(EndpointTest, NamesCorruptSourcesOfTheRequestAndNoOthers) {
  Start();
  script_.corrupt_at_first = {{4, "dn-4"}, {3, "dn-3"}};
  script_.corrupt_at_end = {{0, "dn-0"}, {4, "dn-4"}, {4, "dn-0"}};
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  EXPECT_EQ(client.Receive().payload,
            "bytes 1000\nchecksum crc32c 512\nrepair 0000000000000abc\ncorrupt 4 dn-4\n");
  EndpointClient::Frame frame = client.Receive();
  while (frame.type == 3) frame = client.Receive();
  EXPECT_EQ(frame.payload, "bytes 1000\nattempts 2\ncorrupt 0 dn-0\ncorrupt 4 dn-4\n");
}

// Whoever of several targets is written slowest holds all of them back; nobody gathers bytes.
TEST_F(EndpointTest, AClientThatTakesSeveralTargetsSlowlyHoldsTheRepairBack) {
  Start();
  script_.bytes = 50'000;
  script_.step = 1;
  EndpointClient client(endpoint_->address());
  const int small = 1;
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  ASSERT_TRUE(client.Send(RequestOf("0 1", "50000 50000", "timeout-ms 60000\n")));
  EXPECT_EQ(client.Receive().type, 2);
  {
    MutexLock lock(&script_.mutex);
    EXPECT_EQ(script_.ended, 0) << "100,000 frames do not fit into a socket";
  }
  EXPECT_EQ(Rounds(&client, 2).size(), 100'000u);
}

}  // namespace
}  // namespace ecpipe::endpoint_targets_test
