// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "fakes/accept_hook.h"
#include "net/endpoint_address.h"
#include "unit/requestor/endpoint/endpoint_fixture.h"

namespace ecpipe::endpoint_test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void ExpectWhole(EndpointClient* client, uint64_t bytes) {
  EXPECT_EQ(client->Receive().payload,
            "bytes " + std::to_string(bytes) + "\nchecksum crc32c 512\nrepair 0000000000000abc\n");
  std::string got;
  EndpointClient::Frame frame = client->Receive();
  for (; frame.type == 3; frame = client->Receive()) got += frame.payload;
  ASSERT_EQ(got.size(), bytes);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(static_cast<uint8_t>(got[i]), i % 256);
  EXPECT_EQ(frame.type, 4);
  EXPECT_EQ(frame.payload, "bytes " + std::to_string(bytes) + "\nattempts 2\n");
  EXPECT_EQ(client->Receive().type, 0);
}

TEST_F(EndpointTest, SendsWhatWasAskedFor) {
  for (const std::string& address :
       {"unix:" + scratch_.File("endpoint.sock"), std::string("tcp:127.0.0.1:0")}) {
    Start([&](Endpoint::Options* options) {
      options->address = address;
      options->insecure = true;
    });
    EndpointClient client(endpoint_->address());
    ASSERT_TRUE(client.Send(Request(1000)));
    ExpectWhole(&client, 1000);
    const EndpointCounts counts = Settled();
    EXPECT_EQ(counts.repairs_done, 1u);
    EXPECT_EQ(counts.bytes_sent, 1000u);
    endpoint_.reset();
  }
}

TEST_F(EndpointTest, CutsPiecesThatAreLargerThanAFrame) {
  Start();
  script_.bytes = 90'000;
  script_.step = 90'000;
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(90'000)));
  ExpectWhole(&client, 90'000);
}

TEST_F(EndpointTest, ServesManyAtOnce) {
  Start();
  std::vector<std::unique_ptr<EndpointClient>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<EndpointClient>(endpoint_->address()));
    ASSERT_TRUE(clients.back()->Send(Request(1000)));
  }
  for (const auto& client : clients) ExpectWhole(client.get(), 1000);
  EXPECT_EQ(Settled().repairs_done, 20u);
}

TEST_F(EndpointTest, AnErrorBeforeTheFirstByteIsTold) {
  Start();
  script_.bytes = 0;
  script_.end = absl::FailedPreconditionError("too few survivors");
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  EXPECT_EQ(ErrorOf(&client), "code FAILED_PRECONDITION\nmessage too few survivors\n");
  EXPECT_EQ(Settled().repairs_failed, 1u);
}

TEST_F(EndpointTest, ABlockThatAHelperMayNotReadIsNoRefusalOfTheUser) {
  Start();
  script_.bytes = 0;
  script_.end = absl::PermissionDeniedError("node-1: block b0: Permission denied");
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  EXPECT_EQ(ErrorOf(&client),
            "code FAILED_PRECONDITION\nmessage node-1: block b0: Permission denied\n");
}

TEST_F(EndpointTest, WithoutMemoryForItARepairFailsAndTheOthersGoOn) {
  Start();
  EndpointClient client(endpoint_->address());
  script_.throws = true;
  ASSERT_TRUE(client.Send(Request(2000)));
  EXPECT_EQ(client.Receive().type, 2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Receive().type, 3);
  EXPECT_THAT(ErrorOf(&client), StartsWith("code RESOURCE_EXHAUSTED"));
  EXPECT_EQ(Settled().repairs_failed, 1u);
  script_.throws = false;
  EndpointClient other(endpoint_->address());
  ASSERT_TRUE(other.Send(Request(1000)));
  ExpectWhole(&other, 1000);
}

TEST_F(EndpointTest, AnErrorAfterSomeBytesIsToldInPlaceOfTheEnd) {
  Start();
  script_.bytes = 300;
  for (const absl::Status& end : {absl::AbortedError("given up"), absl::OkStatus()}) {
    script_.end = end;
    EndpointClient client(endpoint_->address());
    ASSERT_TRUE(client.Send(Request(1000)));
    EXPECT_EQ(client.Receive().type, 2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Receive().type, 3);
    // Also where the repair itself takes less for all.
    EXPECT_THAT(ErrorOf(&client), StartsWith(end.ok() ? "code INTERNAL" : "code ABORTED"));
  }
}

TEST_F(EndpointTest, WithoutAChecksumKindNothingIsSent) {
  Start();
  script_.checksum.reset();
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  EXPECT_THAT(ErrorOf(&client), HasSubstr("checksums"));
}

TEST_F(EndpointTest, GarbageIsRefused) {
  Start();
  std::string damaged = Request(1000);
  damaged.back() ^= 1;
  const std::pair<std::string, std::string> cases[] = {
      {std::string(16, 'x'), "not a frame"},
      {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not a frame"},
      {EndpointClient::FrameOf(3, "bytes"), "only REPAIR frames"},
      {EndpointClient::FrameOf(1, ""), "missing"},
      {RequestOf("0 1 2", "9 9 9"), "more targets than the 2"},
      {EndpointClient::FrameOf(1, std::string(65537, 'x')).substr(0, 16), "over the limit"},
      {damaged, "checksum"},
  };
  for (const auto& [bytes, why] : cases) {
    EndpointClient client(endpoint_->address());
    ASSERT_TRUE(client.Send(bytes));
    EXPECT_THAT(ErrorOf(&client), HasSubstr(why));
  }
  EXPECT_EQ(Settled().bad_requests, std::size(cases));
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  ExpectWhole(&client, 1000);
}

TEST_F(EndpointTest, ARefusalIsToldThoughBytesAreLeftUnread) {
  Start();
  const std::string bytes = EndpointClient::FrameOf(3, "bytes");
  std::atomic<bool> done = false;
  // Others come and go, so that the endpoint looks at its sockets all the time.
  std::thread others([&] {
    while (!done) {
      EndpointClient client(endpoint_->address());
      client.Send(Request(1000));
      while (client.Receive().type > 0) {
      }
    }
  });
  int told = 0;
  for (int i = 0; i < 200; ++i) {
    EndpointClient client(endpoint_->address());
    client.Send(bytes);
    told += client.Receive().type == 5 ? 1 : 0;
  }
  done = true;
  others.join();
  EXPECT_EQ(told, 200);
}

TEST_F(EndpointTest, WhoDoesNotAskInTimeIsCutOff) {
  Start([](Endpoint::Options* options) {
    options->session.request_timeout = std::chrono::milliseconds(50);
  });
  EndpointClient silent(endpoint_->address());
  EXPECT_THAT(ErrorOf(&silent), StartsWith("code DEADLINE_EXCEEDED"));
  EndpointClient half(endpoint_->address());
  ASSERT_TRUE(half.Send(Request(1000).substr(0, 30)));
  EXPECT_THAT(ErrorOf(&half), StartsWith("code DEADLINE_EXCEEDED"));
}

TEST_F(EndpointTest, WhoClosesCancelsTheRepair) {
  Start();
  script_.hangs = true;
  {
    EndpointClient client(endpoint_->address());
    ASSERT_TRUE(client.Send(Request(1000, "timeout-ms 60000\n")));
    // Not before the repair runs.
    const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
    while (endpoint_->counts().connections == 0 && Clock::System().Now() < give_up) {
      std::this_thread::yield();
    }
  }
  EXPECT_TRUE(script_.AwaitUntil([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return script_.cancelled == 1 && script_.ended == 1;
  }));
  EXPECT_EQ(Settled().repairs_failed, 1u);
}

TEST_F(EndpointTest, WhoLeavesWithAllBytesCancelsNothing) {
  Start();
  script_.lingers = true;
  const auto take_all = [](EndpointClient* client) {
    ASSERT_TRUE(client->Send(Request(1000)));
    for (int frame = 0; frame < 11; ++frame) ASSERT_EQ(client->Receive().type, frame == 0 ? 2 : 3);
  };
  {
    EndpointClient leaves(endpoint_->address());
    take_all(&leaves);
  }
  // The endpoint takes no other connection before it has looked at those that it has.
  EndpointClient other(endpoint_->address());
  take_all(&other);
  {
    MutexLock lock(&script_.mutex);
    EXPECT_EQ(script_.cancelled, 0);
    script_.released = true;
  }
  script_.changed.NotifyAll();
  EXPECT_EQ(other.Receive().type, 4);
  EXPECT_EQ(Settled().repairs_done, 2u);
}

TEST_F(EndpointTest, WhoSpeaksAfterItsRequestCancelsTheRepair) {
  Start();
  script_.hangs = true;
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000, "timeout-ms 60000\n") + "more"));
  EXPECT_EQ(client.Receive().type, 0);
  EXPECT_EQ(Settled().repairs_failed, 1u);
}

TEST_F(EndpointTest, WithoutAByteInTimeTheClientIsTold) {
  Start();
  script_.hangs = true;
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000, "timeout-ms 50\n")));
  EXPECT_THAT(ErrorOf(&client), StartsWith("code DEADLINE_EXCEEDED"));
  EXPECT_TRUE(script_.AwaitUntil(
      [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return script_.cancelled == 1; }));
}

// The socket is full, the repair waits, and goes on when the client reads.
TEST_F(EndpointTest, AClientThatReadsSlowlyHoldsTheRepairBack) {
  Start();
  script_.bytes = 100'000;
  script_.step = 1;  // a frame a byte fills any socket
  EndpointClient client(endpoint_->address());
  const int small = 1;
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  ASSERT_TRUE(client.Send(Request(100'000, "timeout-ms 60000\n")));
  EXPECT_EQ(client.Receive().type, 2);
  {
    MutexLock lock(&script_.mutex);
    EXPECT_EQ(script_.ended, 0) << "100,000 frames do not fit into a socket";
  }
  std::string got;
  EndpointClient::Frame frame = client.Receive();
  for (; frame.type == 3; frame = client.Receive()) got += frame.payload;
  EXPECT_EQ(frame.type, 4);
  EXPECT_EQ(got.size(), 100'000u);
}

TEST_F(EndpointTest, AClientThatReadsNothingIsCutOff) {
  Start([](Endpoint::Options* options) {
    options->session.write_timeout = std::chrono::milliseconds(50);
  });
  script_.bytes = 100'000;
  script_.step = 1;
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(100'000, "timeout-ms 60000\n")));
  EXPECT_TRUE(
      script_.AwaitUntil([this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return script_.ended == 1; }));
  const EndpointCounts counts = Settled();
  EXPECT_EQ(counts.repairs_failed, 1u);
  EXPECT_LT(counts.bytes_sent, 100'000u);
}

TEST_F(EndpointTest, ConnectionsAreLimited) {
  Start([](Endpoint::Options* options) { options->max_connections = 2; });
  script_.hangs = true;
  EndpointClient first(endpoint_->address());
  EndpointClient second(endpoint_->address());
  ASSERT_TRUE(first.Send(Request(1000, "timeout-ms 60000\n")));
  ASSERT_TRUE(second.Send(Request(1000, "timeout-ms 60000\n")));
  EndpointClient third(endpoint_->address());
  EXPECT_THAT(ErrorOf(&third), StartsWith("code RESOURCE_EXHAUSTED"));
  EXPECT_EQ(endpoint_->counts().refused, 1u);
}

TEST_F(EndpointTest, ManyWhoComeDoNotKeepItFromItsOtherWork) {
  constexpr size_t kMost = 300;
  Start([](Endpoint::Options* options) { options->max_connections = 1; });
  const std::string address = endpoint_->address();
  const std::string path = address.substr(5);
  // Another one comes before each is taken, and the address is to be given up with the first.
  std::vector<std::unique_ptr<EndpointClient>> clients;
  const HookedAccept hooked([&, endpoint = endpoint_.get()](int) {
    if (clients.size() == kMost) return 0;
    if (clients.empty()) endpoint->StopListening();
    clients.push_back(std::make_unique<EndpointClient>(address));
    return 0;
  });
  const EndpointClient first(address);
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(60);
  while (std::filesystem::exists(path) && Clock::System().Now() < give_up) {
    std::this_thread::yield();
  }
  endpoint_.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_LT(clients.size(), kMost);
}

TEST_F(EndpointTest, StoppingEndsAllConnections) {
  Start();
  script_.hangs = true;
  EndpointClient waiting(endpoint_->address());
  ASSERT_TRUE(waiting.Send(Request(1000, "timeout-ms 60000\n")));
  EndpointClient silent(endpoint_->address());
  const TimePoint give_up = Clock::System().Now() + std::chrono::seconds(20);
  while (endpoint_->counts().connections < 2 && Clock::System().Now() < give_up) {
    std::this_thread::yield();
  }
  const std::string path = endpoint_->address().substr(5);
  endpoint_.reset();
  EndpointClient::Frame frame = waiting.Receive();
  EXPECT_TRUE(frame.type == 0 || frame.type == 5);
  EXPECT_FALSE(std::filesystem::exists(path)) << "the socket's file is removed";
}

TEST_F(EndpointTest, TheSocketsFileHasItsMode) {
  Start([](Endpoint::Options* options) { options->mode = 0600; });
  struct stat info{};
  ASSERT_EQ(::stat(endpoint_->address().substr(5).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(EndpointTest, ASocketThatIsLeftIsReplacedAndOneInUseIsNot) {
  const std::string path = scratch_.File("endpoint.sock");
  {
    // As a killed process leaves it.
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, path.data(), path.size());
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  }
  Start();
  EXPECT_TRUE(absl::IsAlreadyExists(EndpointSocket::Listen("unix:" + path, 0600).status()));
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  ExpectWhole(&client, 1000);
  std::ofstream(scratch_.File("file")) << "x";
  EXPECT_TRUE(absl::IsAlreadyExists(
      EndpointSocket::Listen("unix:" + scratch_.File("file"), 0600).status()));
}

TEST_F(EndpointTest, RefusesAddressesThatAreNone) {
  for (const std::string& address :
       {std::string("unix:relative"), std::string("unix:"), std::string("127.0.0.1:5"),
        std::string("tcp:127.0.0.1"), "unix:/" + std::string(200, 'x'), std::string("")}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckEndpointAddress(address, true))) << address;
    EXPECT_TRUE(absl::IsInvalidArgument(EndpointSocket::Listen(address, 0600).status())) << address;
  }
  EXPECT_TRUE(CheckEndpointAddress("unix:/" + std::string(106, 'x'), false).ok());
  EXPECT_FALSE(CheckEndpointAddress("unix:/" + std::string(107, 'x'), false).ok());
  EXPECT_TRUE(CheckEndpointAddress("tcp:[::1]:0", false).ok());
  EXPECT_FALSE(CheckEndpointAddress("tcp:0.0.0.0:0", false).ok());
  EXPECT_TRUE(CheckEndpointAddress("tcp:0.0.0.0:0", true).ok());
  const absl::Status open = Endpoint::Start({.address = "tcp:0.0.0.0:0"}, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(open)) << "off loopback, without TLS";
}

}  // namespace
}  // namespace ecpipe::endpoint_test
