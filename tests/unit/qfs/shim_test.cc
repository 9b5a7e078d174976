// SPDX-License-Identifier: Apache-2.0
// libecpipe_qfs.so against an endpoint that does well, badly, or nothing.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit/net/test_certificates.h"
#include "unit/qfs/shim_fixture.h"

namespace ecpipe_qfs::shim_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMib = 1 << 20;

TEST(Shim, SaysItsVersion) {
  EXPECT_EQ(ShimLibrary::Get().abi_version(), ECPIPE_QFS_ABI_VERSION);
  EXPECT_STREQ(ShimLibrary::Get().version(), ECPIPE_QFS_EXPECTED_VERSION);
}

TEST(Shim, AChunkInReadsOfAMibWithAShortTail) {
  const std::string content = Content(5 * kMib + 12345);
  FakeEndpoint endpoint(Serves(content));
  const Config config(endpoint.address());
  Recovery recovery(config, ChunkOfBytes(static_cast<int64_t>(content.size())));
  for (int i = 0; i < 5; ++i) {
    const Recovery::Outcome one = recovery.Read(kMib);
    ASSERT_EQ(one.code, ECPIPE_QFS_OK) << one.message;
    ASSERT_EQ(one.bytes.size(), static_cast<size_t>(kMib));
    EXPECT_FALSE(one.at_end);
    EXPECT_EQ(one.bytes, content.substr(static_cast<size_t>(i) * kMib, kMib));
  }
  const Recovery::Outcome tail = recovery.Read(kMib);
  EXPECT_EQ(tail.bytes, content.substr(5 * kMib));
  EXPECT_TRUE(tail.at_end);
  const Recovery::Outcome end = recovery.Read(kMib);
  EXPECT_EQ(end.code, ECPIPE_QFS_OK);
  EXPECT_EQ(end.bytes, "");
  EXPECT_TRUE(end.at_end);
  EXPECT_EQ(recovery.wakes(), 0);  // one for each read
}

TEST(Shim, AnySizesOfReadsAndFrames) {
  const std::string content = Content(3 * kMib + 1);
  for (const size_t frame : {size_t{1000}, size_t{65536}, size_t{1} << 20}) {
    FakeEndpoint endpoint(Serves(content, frame));
    const Config config(endpoint.address());
    for (const size_t read : {size_t{65537}, size_t{1} << 20, size_t{64} << 20}) {
      Recovery recovery(config, ChunkOfBytes(static_cast<int64_t>(content.size())));
      const Recovery::Outcome all = recovery.ReadAll(read);
      EXPECT_EQ(all.code, ECPIPE_QFS_OK) << all.message;
      EXPECT_TRUE(all.bytes == content) << frame << " " << read;
    }
  }
}

TEST(Shim, AsksForTheRangeAndNothingElse) {
  std::string asked;
  const std::string content = Content(1000);
  {
    FakeEndpoint endpoint([&](FakeConnection& connection) {
      asked = connection.ReadRequest();
      connection.SendHeader(1000);
      connection.SendData(content);
      connection.SendEnd(1000);
    });
    const Config config(endpoint.address(), "background 0\nclient here\ntimeout-ms 60000\n");
    ecpipe_qfs_chunk chunk = ChunkOfBytes(kMib);
    chunk.offset = 500;
    chunk.bytes = 1000;
    EXPECT_EQ(ShimLibrary::Get().range_bytes(&chunk, nullptr), 1000);
    Recovery recovery(config, chunk);
    EXPECT_EQ(recovery.ReadAll().bytes, content);
  }
  EXPECT_THAT(asked, HasSubstr("\noffset 500\nbytes 1000\ntimeout-ms 60000\nclient here\n"));
  EXPECT_THAT(asked, ::testing::Not(HasSubstr("background")));
}

// The endpoint's rule: bytes are complete only with END.
TEST(Shim, TheLastReadWaitsForTheEnd) {
  const std::string content = Content(kMib + 100);
  const auto bytes = static_cast<int64_t>(content.size());
  std::mutex go;
  go.lock();
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(bytes);
    connection.SendData(content);
    const std::lock_guard lock(go);
    connection.SendEnd(bytes);
  });
  const Config config(endpoint.address());
  Recovery recovery(config, ChunkOfBytes(bytes));
  EXPECT_EQ(recovery.Read(kMib).code, ECPIPE_QFS_OK);
  ASSERT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
  EXPECT_EQ(recovery.Poll().code, ECPIPE_QFS_PENDING);
  go.unlock();
  ASSERT_TRUE(recovery.AwaitWake());
  EXPECT_EQ(recovery.Poll().bytes, content.substr(kMib));
  EXPECT_TRUE(recovery.Poll().at_end);  // says the same until the next read
}

// What an endpoint does after its HEADER and two MiB, and what becomes of the third read.
struct Trouble {
  const char* name;
  std::function<void(FakeConnection& connection, const std::string& content)> after;
  int code;
  const char* message;
};

std::vector<Trouble> Troubles() {
  using Connection = FakeConnection;
  using Text = const std::string&;
  const auto all = [](Text content) { return static_cast<int64_t>(content.size()); };
  const auto rest = [](Text content) { return content.substr(2 * kMib); };
  return {
      {"closes", [](Connection&, Text) {}, ECPIPE_QFS_UNAVAILABLE, "closed the connection"},
      {"closes in a frame",
       [](Connection& to, Text) { to.SendRaw(std::string("ECPR\1\3\0\0\0\1\0\0abcdXYZ", 19)); },
       ECPIPE_QFS_UNAVAILABLE, "closed the connection"},
      {"garbage", [](Connection& to, Text) { to.SendRaw(Content(100000)); }, ECPIPE_QFS_DATA_LOSS,
       "not a frame"},
      {"wrong checksum",
       [](Connection& to, Text) {
         to.SendRaw(std::string("ECPR\1\3\0\0\5\0\0\0\x4c\xbb\x71\x9bhello", 21));
       },
       ECPIPE_QFS_DATA_LOSS, "checksum"},
      {"too much",
       [rest](Connection& to, Text content) { to.SendData(rest(content) + "x", 1 << 20); },
       ECPIPE_QFS_DATA_LOSS, "were missing"},
      {"too little, then the end",
       [all](Connection& to, Text content) {
         to.SendData("abc");
         to.SendEnd(all(content));
       },
       ECPIPE_QFS_DATA_LOSS, "ended after"},
      {"all, then another end",
       [rest](Connection& to, Text content) {
         to.SendData(rest(content));
         to.SendEnd(7);
       },
       ECPIPE_QFS_DATA_LOSS, "ended after"},
      {"all, then no end", [rest](Connection& to, Text content) { to.SendData(rest(content)); },
       ECPIPE_QFS_UNAVAILABLE, "closed the connection"},
      {"all, then more of it",
       [rest](Connection& to, Text content) {
         to.SendData(rest(content));
         to.SendData("x");
       },
       ECPIPE_QFS_DATA_LOSS, "were missing"},
      {"an error",
       [](Connection& to, Text) {
         to.Send(FrameType::kError, "code FAILED_PRECONDITION\nmessage too few survivors\n");
       },
       ECPIPE_QFS_FAILED_PRECONDITION, "too few survivors"},
      {"all, then an error",
       [rest](Connection& to, Text content) {
         to.SendData(rest(content));
         to.Send(FrameType::kError, "code INTERNAL\nmessage wrong after all\n");
       },
       ECPIPE_QFS_INTERNAL, "wrong after all"},
      {"a second header", [all](Connection& to, Text content) { to.SendHeader(all(content)); },
       ECPIPE_QFS_DATA_LOSS, "two HEADERs"},
      {"an empty frame", [](Connection& to, Text) { to.Send(FrameType::kData, ""); },
       ECPIPE_QFS_DATA_LOSS, "frame of 0 bytes"},
      {"a request", [](Connection& to, Text) { to.Send(FrameType::kRepair, "a b\n"); },
       ECPIPE_QFS_DATA_LOSS, "type 1"},
  };
}

TEST(ShimTrouble, WhatCameBeforeStaysGoodAndTheRestFails) {
  const std::string content = Content(3 * kMib - 77);
  const auto bytes = static_cast<int64_t>(content.size());
  for (const Trouble& trouble : Troubles()) {
    SCOPED_TRACE(trouble.name);
    FakeEndpoint endpoint([&](FakeConnection& connection) {
      connection.ReadRequest();
      connection.SendHeader(bytes);
      connection.SendData(content.substr(0, 2 * kMib));
      trouble.after(connection, content);
    });
    const Config config(endpoint.address());
    Recovery recovery(config, ChunkOfBytes(bytes));
    const Recovery::Outcome all = recovery.ReadAll();
    EXPECT_EQ(all.code, trouble.code) << all.message;
    EXPECT_THAT(all.message, HasSubstr(trouble.message));
    EXPECT_TRUE(all.bytes == content.substr(0, 2 * kMib));
    EXPECT_EQ(recovery.position(), 2 * kMib);
    // For good, with the same reason, and no byte that was held back comes out.
    const Recovery::Outcome again = recovery.Read(3);
    EXPECT_EQ(again.code, trouble.code);
    EXPECT_EQ(again.message, all.message);
    EXPECT_EQ(again.bytes, "");
  }
}

TEST(ShimTrouble, BeforeTheHeader) {
  struct Case {
    std::function<void(FakeConnection& connection)> script;
    int code;
  };
  const std::vector<Case> cases = {
      {[](FakeConnection&) {}, ECPIPE_QFS_UNAVAILABLE},
      {[](FakeConnection& to) { to.SendRaw(Content(64)); }, ECPIPE_QFS_DATA_LOSS},
      {[](FakeConnection& to) { to.SendHeader(99); }, ECPIPE_QFS_DATA_LOSS},
      {[](FakeConnection& to) { to.SendData("abc"); }, ECPIPE_QFS_DATA_LOSS},
      {[](FakeConnection& to) { to.SendEnd(kMib); }, ECPIPE_QFS_DATA_LOSS},
      {[](FakeConnection& to) { to.Send(FrameType::kHeader, "nothing\n"); }, ECPIPE_QFS_DATA_LOSS},
      {[](FakeConnection& to) {
         to.Send(FrameType::kError, "code INVALID_ARGUMENT\nmessage no\n");
       },
       ECPIPE_QFS_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    FakeEndpoint endpoint([&](FakeConnection& connection) {
      connection.ReadRequest();
      cases[i].script(connection);
    });
    const Config config(endpoint.address());
    Recovery recovery(config, ChunkOfBytes(kMib));
    const Recovery::Outcome outcome = recovery.ReadAll();
    EXPECT_EQ(outcome.code, cases[i].code) << outcome.message;
    EXPECT_NE(outcome.message, "");
  }
}

TEST(ShimTrouble, NobodyListens) {
  const Config config("unix:/tmp/ecpipe-qfs-nobody.sock");
  Recovery recovery(config, ChunkOfBytes(kMib));
  const Recovery::Outcome outcome = recovery.ReadAll();
  EXPECT_EQ(outcome.code, ECPIPE_QFS_UNAVAILABLE);
  EXPECT_THAT(outcome.message, HasSubstr("ecpipe-helper"));
}

TEST(ShimTrouble, ASilentEndpointIsGivenUpAndThenLeftAloneForAWhile) {
  FakeEndpoint endpoint([](FakeConnection& connection) { connection.AwaitClose(); });
  const Config config(endpoint.address(), "timeout-ms 50\n");
  Recovery first(config, ChunkOfBytes(kMib));
  EXPECT_EQ(first.ReadAll().code, ECPIPE_QFS_DEADLINE_EXCEEDED);
  Recovery second(config, ChunkOfBytes(kMib));
  const Recovery::Outcome outcome = second.ReadAll();
  EXPECT_EQ(outcome.code, ECPIPE_QFS_UNAVAILABLE);
  EXPECT_THAT(outcome.message, HasSubstr("retry-ms"));
  EXPECT_EQ(endpoint.connections(), 1);
}

TEST(ShimTrouble, AnAnswerToOneRequestUndoesTheFailureOfAnother) {
  const std::string content = Content(kMib);
  std::atomic<int> asked{0};
  std::promise<void> failed;
  std::shared_future<void> has_failed = failed.get_future().share();
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    const int number = ++asked;
    if (number == 2) return;  // it closes
    if (number == 1) has_failed.wait();
    connection.SendHeader(kMib);
    connection.SendData(content);
    connection.SendEnd(kMib);
    connection.AwaitClose();
  });
  const Config config(endpoint.address());
  Recovery first(config, ChunkOfBytes(kMib));
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (asked < 1 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  Recovery second(config, ChunkOfBytes(kMib));
  EXPECT_EQ(second.ReadAll().code, ECPIPE_QFS_UNAVAILABLE);
  failed.set_value();
  EXPECT_TRUE(first.ReadAll().bytes == content);
  Recovery third(config, ChunkOfBytes(kMib));
  EXPECT_TRUE(third.ReadAll().bytes == content) << "it is not off for retry-ms";
}

TEST(ShimTrouble, WhereRetryIsZeroItIsAskedEachTime) {
  FakeEndpoint endpoint([](FakeConnection& connection) { connection.ReadRequest(); });
  const Config config(endpoint.address(), "retry-ms 0\n");
  for (int i = 1; i <= 2; ++i) {
    Recovery recovery(config, ChunkOfBytes(kMib));
    EXPECT_EQ(recovery.ReadAll().code, ECPIPE_QFS_UNAVAILABLE);
    EXPECT_EQ(endpoint.connections(), i);
  }
}

TEST(ShimTrouble, AnEndpointThatStallsIsGivenUp) {
  const std::string content = Content(2 * kMib);
  FakeEndpoint endpoint([&](FakeConnection& connection) {
    connection.ReadRequest();
    connection.SendHeader(2 * kMib);
    connection.SendData(content.substr(0, kMib + 5));
    connection.AwaitClose();
  });
  const Config config(endpoint.address(), "stall-ms 100\n");
  Recovery recovery(config, ChunkOfBytes(2 * kMib));
  const Recovery::Outcome all = recovery.ReadAll();
  EXPECT_EQ(all.code, ECPIPE_QFS_DEADLINE_EXCEEDED);
  EXPECT_TRUE(all.bytes == content.substr(0, kMib));
}

TEST(ShimTrouble, AQueueThatIsFullEndsInTime) {
  // A listener of one place that nobody accepts from.
  char folder[] = "/tmp/ecpipe-qfs-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/full.sock";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  const ecpipe::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto* any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener.get(), any, sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const ecpipe::UniqueFd holder(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(holder.get(), any, sizeof address), 0);
  {
    const Config config("unix:" + path, "timeout-ms 50\n");
    Recovery recovery(config, ChunkOfBytes(kMib));
    EXPECT_EQ(recovery.ReadAll().code, ECPIPE_QFS_DEADLINE_EXCEEDED);
  }
  const Config patient("unix:" + path, "timeout-ms 600000\n");
  Recovery recovery(patient, ChunkOfBytes(kMib));
  EXPECT_EQ(recovery.Submit(kMib), ECPIPE_QFS_OK);
  EXPECT_LT(recovery.Close(), kPrompt);
  ::unlink(path.c_str());
  ::rmdir(folder);
}

TEST(ShimMisuse, IsRefusedAndChangesNothing) {
  const std::string content = Content(2000);
  FakeEndpoint endpoint(Serves(content));
  const Config config(endpoint.address());
  Recovery recovery(config, ChunkOfBytes(2000));
  EXPECT_EQ(recovery.Submit(1000, 5), ECPIPE_QFS_INVALID_ARGUMENT);
  EXPECT_EQ(recovery.Submit(1000, -1), ECPIPE_QFS_INVALID_ARGUMENT);
  EXPECT_EQ(recovery.Submit(0), ECPIPE_QFS_INVALID_ARGUMENT);
  EXPECT_EQ(recovery.Read(1000).bytes, content.substr(0, 1000));
  EXPECT_EQ(recovery.Submit(1000, 0), ECPIPE_QFS_INVALID_ARGUMENT);
  EXPECT_EQ(recovery.Read(1000).bytes, content.substr(1000));
}

TEST(ShimMisuse, BadChunksAndStructsAreRefusedAtOnce) {
  const ShimLibrary& library = ShimLibrary::Get();
  const Config config("unix:/tmp/ecpipe-qfs-nobody.sock");
  const auto refused = [&](auto change) {
    struct {
      ecpipe_qfs_chunk chunk;
      int64_t newer;
    } longer{ChunkOfBytes(kMib), 0};
    change(&longer.chunk, &longer.newer);
    ecpipe_qfs_read* read = nullptr;
    ecpipe_qfs_error error{sizeof error, 0, ""};
    const int code = library.open(config.get(), &longer.chunk, nullptr, nullptr, &read, &error);
    EXPECT_EQ(read == nullptr, code != ECPIPE_QFS_OK);
    if (code != ECPIPE_QFS_OK) EXPECT_EQ(error.code, code);
    if (code != ECPIPE_QFS_OK) EXPECT_STRNE(error.message, "");
    library.close(read);
    return code;
  };
  const int bad = ECPIPE_QFS_INVALID_ARGUMENT;
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk, int64_t*) { chunk->striper_type = 1; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk, int64_t*) { chunk->struct_bytes = 8; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk, int64_t*) { chunk->reserved = 1; }), bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk, int64_t* newer) {
              chunk->struct_bytes += sizeof *newer;
              *newer = 1;
            }),
            bad);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk, int64_t* newer) {
              chunk->struct_bytes += sizeof *newer;
            }),
            ECPIPE_QFS_OK);
  EXPECT_EQ(refused([](ecpipe_qfs_chunk* chunk, int64_t*) { chunk->chunk_offset = 9LL << 26; }),
            ECPIPE_QFS_FAILED_PRECONDITION);
  EXPECT_EQ(library.open(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), bad);
  EXPECT_EQ(library.submit(nullptr, 0, nullptr, 0, nullptr), bad);
  EXPECT_EQ(library.poll(nullptr, nullptr, nullptr, nullptr), bad);
  EXPECT_EQ(library.range_bytes(nullptr, nullptr), -1);
  library.cancel(nullptr);
  library.close(nullptr);
  library.config_free(nullptr);
}

TEST(ShimMisuse, AConfigurationMayGoBeforeItsReads) {
  const std::string content = Content(kMib);
  FakeEndpoint endpoint(Serves(content));
  auto config = std::make_unique<Config>(endpoint.address());
  Recovery recovery(*config, ChunkOfBytes(kMib));
  config.reset();
  EXPECT_TRUE(recovery.ReadAll().bytes == content);
}

TEST(ShimTls, AnEndpointWithTheRightRole) {
  const ecpipe::TestCertificates& certificates = ecpipe::TestCertificates::Shared();
  const auto files = [&](const std::string& name) {
    return FakeEndpoint::Tls{certificates.Path("ca.pem"), certificates.Path(name + ".pem"),
                             certificates.Path(name + ".key")};
  };
  const std::string ours = "tls-ca " + certificates.Path("ca.pem") + "\ntls-certificate " +
                           certificates.Path("the-receiver.pem") + "\ntls-key " +
                           certificates.Path("the-receiver.key") + "\n";
  const std::string content = Content(3 * kMib + 5);
  const auto bytes = static_cast<int64_t>(content.size());
  const FakeEndpoint::Tls helper = files("the-sender");
  FakeEndpoint endpoint(Serves(content), &helper);
  {
    const Config config(endpoint.address(), ours);
    Recovery recovery(config, ChunkOfBytes(bytes));
    const Recovery::Outcome all = recovery.ReadAll();
    EXPECT_EQ(all.code, ECPIPE_QFS_OK) << all.message;
    EXPECT_TRUE(all.bytes == content);
  }
  const FakeEndpoint::Tls coordinator = files("head");
  FakeEndpoint other(Serves(content), &coordinator);
  const Config config(other.address(), ours);
  Recovery recovery(config, ChunkOfBytes(bytes));
  const Recovery::Outcome refused = recovery.ReadAll();
  EXPECT_EQ(refused.code, ECPIPE_QFS_UNAUTHENTICATED);
  EXPECT_THAT(refused.message, HasSubstr("role"));
}

TEST(ShimTls, AnEndpointOfAnotherCaAndFilesThatAreNotThere) {
  const ecpipe::TestCertificates& ours = ecpipe::TestCertificates::Shared();
  const ecpipe::TestCertificates theirs("other=helper");
  const FakeEndpoint::Tls tls{theirs.Path("ca.pem"), theirs.Path("other.pem"),
                              theirs.Path("other.key")};
  FakeEndpoint endpoint(Serves(Content(100)), &tls);
  for (const char* name : {"the-receiver", "nobody-made-this"}) {
    const Config config(endpoint.address(), "tls-ca " + ours.Path("ca.pem") + "\ntls-certificate " +
                                                ours.Path(std::string(name) + ".pem") +
                                                "\ntls-key " +
                                                ours.Path(std::string(name) + ".key") + "\n");
    Recovery recovery(config, ChunkOfBytes(100));
    const Recovery::Outcome refused = recovery.ReadAll();
    EXPECT_EQ(refused.code, ECPIPE_QFS_UNAUTHENTICATED) << refused.message;
    EXPECT_THAT(refused.message, HasSubstr("make-certs.sh"));
  }
}

}  // namespace
}  // namespace ecpipe_qfs::shim_test
