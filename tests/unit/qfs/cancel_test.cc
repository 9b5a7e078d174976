// SPDX-License-Identifier: Apache-2.0
// Recoveries that are cancelled or closed, in each state, and many at once.
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "unit/net/test_certificates.h"
#include "unit/qfs/shim_fixture.h"

namespace ecpipe_qfs::cancel_test {
namespace {

constexpr int64_t kMib = 1 << 20;
constexpr const char* kPatient = "timeout-ms 600000\nstall-ms 600000\n";

// Cancels a read that is under way: it fails at once, its buffer is the caller's again, and close
// is prompt.
void ExpectPromptCancel(Recovery* recovery) {
  const auto begun = std::chrono::steady_clock::now();
  recovery->Cancel();
  const Recovery::Outcome outcome = recovery->Poll();
  EXPECT_EQ(outcome.code, ECPIPE_QFS_CANCELLED) << outcome.message;
  EXPECT_NE(outcome.message, "");
  EXPECT_EQ(recovery->Submit(kMib), ECPIPE_QFS_OK);  // and fails in the same way
  EXPECT_EQ(recovery->Poll().code, ECPIPE_QFS_CANCELLED);
  recovery->Close();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPrompt);
}

TEST(ShimCancel, BeforeAnything) {
  const Config config("unix:/tmp/ecpipe-qfs-nobody.sock", kPatient);
  Recovery recovery(config, ChunkOfBytes(kMib));
  recovery.Cancel();
  recovery.Cancel();
  EXPECT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
  EXPECT_NE(recovery.Poll().code, ECPIPE_QFS_OK);  // it may have found nobody before
  EXPECT_LT(recovery.Close(), kPrompt);
}

TEST(ShimCancel, WaitingForTheHeader) {
  std::atomic<bool> closed = false;
  {
    FakeEndpoint endpoint([&](FakeConnection& connection) {
      connection.ReadRequest();
      closed = connection.AwaitClose();
    });
    const Config config(endpoint.address(), kPatient);
    Recovery recovery(config, ChunkOfBytes(kMib));
    ASSERT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
    endpoint.AwaitConnections(1);
    ExpectPromptCancel(&recovery);
    // The endpoint learns of it from the closed connection, and ends the repair.
    while (!closed) std::this_thread::yield();
  }
  EXPECT_TRUE(closed);
}

// The kernel takes the connection, and nobody answers.
TEST(ShimCancel, InATlsHandshake) {
  const ecpipe::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), any, bytes), 0);
  ASSERT_EQ(::getsockname(listener.get(), any, &bytes), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  const ecpipe::TestCertificates& certificates = ecpipe::TestCertificates::Shared();
  const std::string tls = "tls-ca " + certificates.Path("ca.pem") + "\ntls-certificate " +
                          certificates.Path("the-receiver.pem") + "\ntls-key " +
                          certificates.Path("the-receiver.key") + "\n";
  const std::string endpoint = "tcp:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  {
    const Config config(endpoint, tls + kPatient);
    Recovery recovery(config, ChunkOfBytes(kMib));
    ASSERT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
    const ecpipe::UniqueFd accepted(::accept(listener.get(), nullptr, nullptr));
    char hello = 0;
    ASSERT_EQ(::recv(accepted.get(), &hello, 1, 0), 1);  // it is in the handshake
    ExpectPromptCancel(&recovery);
  }
  const Config config(endpoint, tls + "timeout-ms 50\n");
  Recovery recovery(config, ChunkOfBytes(kMib));
  EXPECT_EQ(recovery.ReadAll().code, ECPIPE_QFS_DEADLINE_EXCEEDED);
}

TEST(ShimCancel, InTheMiddleOfTheBytes) {
  const std::string content = Content(3 * kMib);
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(3 * kMib);
    connection.SendData(content.substr(0, kMib + 1000));
    connection.AwaitClose();
  });
  const Config config(endpoint.address(), kPatient);
  Recovery recovery(config, ChunkOfBytes(3 * kMib));
  EXPECT_TRUE(recovery.Read(kMib).bytes == content.substr(0, kMib));
  ASSERT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
  ExpectPromptCancel(&recovery);
}

TEST(ShimCancel, InTheMiddleOfAFrame) {
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(3 * kMib);
    connection.SendRaw(std::string("ECPR\1\3\0\0\0\0\x10\0abcdXYZ", 19));
    connection.AwaitClose();
  });
  const Config config(endpoint.address(), kPatient);
  Recovery recovery(config, ChunkOfBytes(3 * kMib));
  ASSERT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
  endpoint.AwaitConnections(1);
  ExpectPromptCancel(&recovery);
}

TEST(ShimCancel, WaitingForTheEnd) {
  const std::string content = Content(kMib);
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(kMib);
    connection.SendData(content);
    connection.AwaitClose();
  });
  const Config config(endpoint.address(), kPatient);
  Recovery recovery(config, ChunkOfBytes(kMib));
  EXPECT_EQ(recovery.Read(kMib - 1).code, ECPIPE_QFS_OK);
  ASSERT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
  EXPECT_EQ(recovery.Poll().code, ECPIPE_QFS_PENDING);
  ExpectPromptCancel(&recovery);
}

TEST(ShimCancel, AtTheEndChangesNothing) {
  const std::string content = Content(kMib);
  FakeEndpoint endpoint(Serves(content));
  const Config config(endpoint.address(), kPatient);
  Recovery recovery(config, ChunkOfBytes(kMib));
  EXPECT_TRUE(recovery.ReadAll().at_end);
  recovery.Cancel();
  EXPECT_EQ(recovery.Poll().code, ECPIPE_QFS_OK);
  EXPECT_TRUE(recovery.Poll().at_end);
  EXPECT_TRUE(recovery.Poll().bytes == content);
}

TEST(ShimCancel, AfterAnErrorKeepsTheError) {
  FakeEndpoint endpoint([](FakeConnection& connection) {
    connection.ReadRequest();
    connection.Send(FrameType::kError, "code ABORTED\nmessage too many attempts\n");
  });
  const Config config(endpoint.address(), kPatient);
  Recovery recovery(config, ChunkOfBytes(kMib));
  const int aborted = 10;
  EXPECT_EQ(recovery.ReadAll().code, aborted);
  recovery.Cancel();
  EXPECT_EQ(recovery.Poll().code, aborted);
  EXPECT_EQ(recovery.Read(kMib).code, aborted);
}

TEST(ShimCancel, ByAnotherThreadWhileBytesCome) {
  const std::string content = Content(8 * kMib);
  FakeEndpoint endpoint(Serves(content));
  const Config config(endpoint.address(), kPatient);
  for (int i = 0; i < 10; ++i) {
    Recovery recovery(config, ChunkOfBytes(8 * kMib));
    std::thread other([&] {
      for (int turns = 0; turns < i * 50; ++turns) std::this_thread::yield();
      recovery.Cancel();
    });
    const Recovery::Outcome all = recovery.ReadAll(100'000);
    EXPECT_TRUE(all.code == ECPIPE_QFS_CANCELLED || (all.code == ECPIPE_QFS_OK && all.at_end));
    EXPECT_TRUE(all.bytes == content.substr(0, all.bytes.size()));
    other.join();
  }
}

TEST(ShimClose, WithoutReading) {
  const std::string content = Content(8 * kMib);
  for (const bool connected : {false, true}) {
    FakeEndpoint endpoint(Serves(content));
    const Config config(endpoint.address(), kPatient);
    Recovery recovery(config, ChunkOfBytes(8 * kMib));
    if (connected) endpoint.AwaitConnections(1);
    EXPECT_LT(recovery.Close(), kPrompt);
    EXPECT_EQ(recovery.wakes(), 0);
  }
}

// A reader that takes its time holds the endpoint back, and loses nothing.
TEST(ShimClose, WithTheReadAheadFull) {
  const std::string content = Content(20 * kMib);
  FakeEndpoint endpoint(Serves(content, kMib));
  const Config config(endpoint.address(), "timeout-ms 600000\nstall-ms 1000\n");
  Recovery recovery(config, ChunkOfBytes(20 * kMib));
  EXPECT_EQ(recovery.Read(1).code, ECPIPE_QFS_OK);
  // Longer than stall-ms.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // sleep-ok: the reader is slow
  EXPECT_EQ(recovery.Read(kMib).code, ECPIPE_QFS_OK);
  const Recovery::Outcome rest = recovery.ReadAll();
  EXPECT_EQ(rest.code, ECPIPE_QFS_OK) << rest.message;
  EXPECT_TRUE(rest.bytes == content.substr(kMib + 1));
  Recovery idle(config, ChunkOfBytes(20 * kMib));
  EXPECT_EQ(idle.Read(1).code, ECPIPE_QFS_OK);
  EXPECT_LT(idle.Close(), kPrompt);
}

// Each frame that is held takes more memory than its bytes, so their number has a limit as well.
TEST(ShimClose, WithMoreFramesThanItHolds) {
  constexpr int kFrames = 200'000;  // of a byte; the socket's buffers hold a tenth
  const std::string content = Content(kFrames);
  std::atomic<int> sent{0};
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(kFrames);
    while (sent < kFrames && connection.SendData(content.substr(static_cast<size_t>(sent), 1))) {
      ++sent;
    }
    connection.SendEnd(kFrames);
  });
  const Config config(endpoint.address(), kPatient);
  Recovery recovery(config, ChunkOfBytes(kFrames));
  EXPECT_EQ(recovery.Read(1).code, ECPIPE_QFS_OK);
  int before = -1;
  for (int now = sent; now != before; now = sent) {
    before = now;
    // sleep-ok: nothing tells that the endpoint has come to a halt
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // sleep-ok: as above
  }
  EXPECT_LT(before, kFrames / 2);
  const Recovery::Outcome rest = recovery.ReadAll();
  EXPECT_EQ(rest.code, ECPIPE_QFS_OK) << rest.message;
  EXPECT_TRUE(rest.bytes == content.substr(1));
}

TEST(ShimMany, RecoveriesAtOnceDoNotMix) {
  constexpr int kRecoveries = 12;
  FakeEndpoint endpoint([](FakeConnection& connection) {
    const std::string request = connection.ReadRequest();
    const std::string content = Content(2 * kMib + 7, std::stoi(*LineValue(request, "version")));
    const auto bytes = static_cast<int64_t>(content.size());
    if (connection.SendHeader(bytes) && connection.SendData(content)) connection.SendEnd(bytes);
  });
  const Config config(endpoint.address(), kPatient);
  std::vector<std::thread> threads;
  for (int i = 1; i <= kRecoveries; ++i) {
    threads.emplace_back([&config, i] {
      ecpipe_qfs_chunk chunk = ChunkOfBytes(2 * kMib + 7);
      chunk.chunk_version = i;
      Recovery recovery(config, chunk);
      const Recovery::Outcome all = recovery.ReadAll();
      EXPECT_EQ(all.code, ECPIPE_QFS_OK) << all.message;
      EXPECT_TRUE(all.bytes == Content(2 * kMib + 7, i));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ecpipe_qfs::cancel_test
