// SPDX-License-Identifier: Apache-2.0
#include "rpc/caller_limits.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "ecpipe/v1/helper.grpc.pb.h"
#include "net/host_lookups.h"
#include "net/tcp_socket.h"
#include "rpc/channel.h"
#include "rpc/rpc_exit.h"
#include "rpc/rpc_server.h"

namespace ecpipe::caller_limits_test {
namespace {

constexpr Duration kLong = std::chrono::seconds(60);  // no test waits for it to pass
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

class FakeHelper : public v1::HelperService::Service {
 public:
  grpc::Status CancelRepair(grpc::ServerContext*, const v1::CancelRepairRequest*,
                            v1::CancelRepairResponse*) override {
    return grpc::Status::OK;
  }
};

HostPort NumericOf(const std::string& address) {
  const HostPort named = ParseHostPort(address).value();
  const TimePoint deadline = Clock::System().Now() + kLong;
  const auto found = HostLookups::OfThisProcess().Begin(named.host)->Await(deadline);
  return {found.value().front(), named.port};
}

// A connection that only looks whether it was closed.
class Silent {
 public:
  explicit Silent(const std::string& address) : fd_(StartConnect(NumericOf(address)).value()) {
    pollfd polled{fd_.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&polled, 1, 60'000), 1);
  }
  // gRPC's first settings may come before.
  bool ClosedWithin(Duration patience) const {
    const TimePoint deadline = Clock::System().Now() + patience;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          std::max(deadline - Clock::System().Now(), Duration(0)));
      pollfd polled{fd_.get(), POLLIN, 0};
      if (::poll(&polled, 1, static_cast<int>(left.count())) == 0) return false;
      char bytes[256];
      if (::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return true;
    }
  }

 private:
  const UniqueFd fd_;
};

// A streaming call that says nothing. Where the server waits for a request, and answers at once, it
// has sent an empty one and has the answer, or knows that none comes.
class IdleStream {
 public:
  explicit IdleStream(const std::shared_ptr<grpc::Channel>& channel,
                      const char* method = kReflection)
      : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    if (method == kWatch) {
      const grpc::Slice nothing;
      call_->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
      queue_.Next(&tag, &ok);
      grpc::ByteBuffer answer;
      call_->Read(&answer, nullptr);
      queue_.Next(&tag, &ok);
    }
    call_->Finish(&status_, this);
  }
  ~IdleStream() {
    context_.TryCancel();
    if (!ended_) EndedWithin(kLong);
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  bool EndedWithin(Duration patience) {
    if (ended_) return true;
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::microseconds>(patience);
    ended_ = queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT;
    return ended_;
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  grpc::Status status_;
  bool ended_ = false;
};

class CallerLimitsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { PrepareRpcExit(); }

  void Serve(const CallerLimits::Options& limits, const std::string& address = "127.0.0.1:0") {
    server_ = RpcServer::Start(address, RpcSecurity(nullptr), {&helper_}, limits).value();
  }
  std::shared_ptr<grpc::Channel> Connect() {
    return MakeChannel(server_->address(), RpcSecurity(nullptr), Role::kHelper);
  }
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    SetTimeout(&context, kLong);
    v1::CancelRepairResponse response;
    return v1::HelperService::NewStub(channel)->CancelRepair(&context, v1::CancelRepairRequest(),
                                                             &response);
  }

  FakeHelper helper_;
  std::unique_ptr<RpcServer> server_;
};

TEST_F(CallerLimitsTest, WhoDoesNotCallIsClosed) {
  Serve({.first_call = std::chrono::milliseconds(200)});
  EXPECT_TRUE(Silent(server_->address()).ClosedWithin(kLong));
}

TEST_F(CallerLimitsTest, WhoHasCalledStays) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0", "localhost:0"}) {
    Serve({.first_call = std::chrono::milliseconds(200)}, address);
    const auto channel = Connect();
    ASSERT_TRUE(Call(channel).ok()) << address;
    Silent late(server_->address());
    EXPECT_TRUE(late.ClosedWithin(kLong)) << "so the time of the other is over as well";
    EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY) << address;
    EXPECT_TRUE(Call(channel).ok());
  }
}

TEST_F(CallerLimitsTest, BeyondTheLimitTheOldestIsClosed) {
  Serve({.first_call = kLong, .max_waiting = 4});
  std::vector<std::unique_ptr<Silent>> crowd;
  for (int i = 0; i < 10; ++i) crowd.push_back(std::make_unique<Silent>(server_->address()));
  for (size_t i = 0; i < 6; ++i) EXPECT_TRUE(crowd[i]->ClosedWithin(kLong)) << i;
  for (size_t i = 6; i < 10; ++i) EXPECT_FALSE(crowd[i]->ClosedWithin(Duration(0))) << i;
  EXPECT_TRUE(Call(Connect()).ok()) << "whoever comes is let in";
}

TEST_F(CallerLimitsTest, AFloodThatCallsPushesOutItsOldest) {
  Serve({.max_calling = 8});
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 12; ++i) {
    grpc::ChannelArguments own;
    own.SetInt("ecpipe.test.number", i);  // else channels to one address share a connection
    channels.push_back(
        grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), own));
    ASSERT_TRUE(Call(channels.back()).ok()) << i;
  }
  const TimePoint deadline = Clock::System().Now() + kLong;
  const auto open = [&] {
    return std::count_if(channels.begin(), channels.end(), [](const auto& channel) {
      return channel->GetState(false) == GRPC_CHANNEL_READY;
    });
  };
  while (open() > 8 && Clock::System().Now() < deadline) std::this_thread::yield();
  EXPECT_EQ(open(), 8);
  EXPECT_TRUE(Call(channels[0]).ok()) << "it connects again";
}

TEST_F(CallerLimitsTest, StreamsEndInTimeAndAreFew) {
  Serve({.max_reflections = 2, .reflection = std::chrono::milliseconds(500)});
  const auto channel = Connect();
  const TimePoint begun = Clock::System().Now();
  std::vector<std::unique_ptr<IdleStream>> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(std::make_unique<IdleStream>(channel));
  EXPECT_TRUE(Call(channel).ok()) << "others are served meanwhile";
  for (auto& stream : streams) EXPECT_TRUE(stream->EndedWithin(kLong));
  EXPECT_LT(Clock::System().Now() - begun, kLong);
}

TEST_F(CallerLimitsTest, WatchesOfHealthAreFewAndTakeNobodysPlace) {
  Serve({.max_streams = 1, .max_watches = 2, .reflection = kLong});
  const auto channel = Connect();
  std::vector<std::unique_ptr<IdleStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(std::make_unique<IdleStream>(channel, kWatch));
  EXPECT_FALSE(streams[0]->EndedWithin(Duration(0)));
  EXPECT_FALSE(streams[1]->EndedWithin(Duration(0)));
  EXPECT_TRUE(streams[2]->EndedWithin(kLong));
  EXPECT_FALSE(IdleStream(channel).EndedWithin(std::chrono::milliseconds(300)));
  EXPECT_TRUE(Call(channel).ok());
}

TEST_F(CallerLimitsTest, AWatchEndsInTime) {
  Serve({.watch = std::chrono::milliseconds(200)});
  EXPECT_TRUE(IdleStream(Connect(), kWatch).EndedWithin(kLong / 2));
}

TEST(CallerLimits, AWatchTooManyIsRefusedAndAskingIsNot) {
  CallerLimits limits({.max_watches = 0});
  EXPECT_TRUE(absl::IsResourceExhausted(limits.Admit(kWatch, "eve")));
  EXPECT_TRUE(limits.Admit("/grpc.health.v1.Health/Check", "eve").ok());
}

TEST_F(CallerLimitsTest, AStreamMayWaitForItsTime) {
  Serve({.reflection = kLong});
  IdleStream stream(Connect());
  EXPECT_FALSE(stream.EndedWithin(std::chrono::milliseconds(700)));
}

TEST(CallerLimits, LeaveTheLargerPartOfTheDescriptors) {
  for (const uint64_t limit : {256ul, 512ul, 1024ul, 4096ul, 65536ul, 1ul << 20}) {
    const CallerLimits::Room room = CallerLimits::RoomFor({}, limit);
    EXPECT_LE(2 * (room.calling + room.waiting), limit * 5 / 8) << limit;
    EXPECT_GE(room.calling, limit >= 4096 ? 1024u : limit / 4) << limit;
  }
}

}  // namespace
}  // namespace ecpipe::caller_limits_test
