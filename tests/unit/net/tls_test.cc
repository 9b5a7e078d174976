// SPDX-License-Identifier: Apache-2.0
// TLS on the data port: who may speak to whom, and what happens when certificates change. That TLS
// keeps what streams promise is in tcp_transport_test.cc.
#include "net/tls/tls.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include "unit/net/tcp_fixture.h"
#include "unit/net/test_certificates.h"

namespace ecpipe::tls_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class TlsTest : public TcpTransportTest {
 protected:
  void SetUp() override {
    sender_tls_ = Shared().Context("the-sender");
    receiver_tls_ = Shared().Context("the-receiver");
    TcpTransportTest::SetUp();
  }

  static const TestCertificates& Shared() { return TestCertificates::Shared(); }

  // How a stream of one frame ends for its receiver.
  absl::Status Try(std::shared_ptr<TlsContext> receiver_tls,
                   const std::string& sender_node = "the-sender",
                   const std::string& receiver_node = "requestor:r") {
    sender_.reset();
    Offer(receiver_node);
    const auto dialler = MakeTcpTransport(nullptr, std::move(receiver_tls));
    const HopInput input{
        TheHello().edge, TheHello().token, server_->address(), sender_node, {}, {}};
    auto receiver = dialler->Connect(input, {1, kMaxSliceBytes}).value();
    const Bytes payload = RandomBytes(100'000, 1);
    Bytes got(payload.size());
    std::promise<void> given_up;
    auto sent = std::async(std::launch::async, [&, done = given_up.get_future()] {
      const auto over = [&] {
        return done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      };
      while (!over() &&
             !sender_->TrySend(Header(0, payload.size()), payload, SliceSender::Next::kUnknown)
                  .value_or(true)) {
        pollfd polled[2] = {sender_->poll_fd(), {wakeup_->fd(), POLLIN, 0}};
        ::poll(polled, 2, 10);
        wakeup_->Drain();
      }
    });
    const absl::Status status = ReceiveFrame(receiver.get(), Header(0, got.size()), got);
    given_up.set_value();
    sent.get();
    if (status.ok()) {
      EXPECT_EQ(got, payload);
    }
    return status;
  }

  // What was refused by the sender shows as an alert, or as a hang-up that overtook it.
  static void ExpectRefusedByPeer(const absl::Status& status) {
    EXPECT_THAT(std::string(status.message()), AnyOf(HasSubstr("alert"), HasSubstr("its log")))
        << status;
  }
};

TEST_F(TlsTest, HelpersRequestorsAndOperatorsMayReceive) {
  for (const char* name : {"the-receiver", "node-2", "ann"}) {
    const absl::Status status = Try(Shared().Context(name));
    EXPECT_TRUE(status.ok()) << name << status;
  }
}

TEST_F(TlsTest, ACertificateWithoutSuchARoleIsRefused) {
  ExpectRefusedByPeer(Try(Shared().Context("nobody")));
}

TEST_F(TlsTest, TheSenderMustBeTheNodeOfThePlan) {
  const absl::Status status = Try(receiver_tls_, "node-2");
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("names node 'the-sender', but node 'node-2' was expected"));
}

// Who has got hold of another's token has a certificate of its own name.
TEST_F(TlsTest, TheReceiverMustBeTheNodeOfThePlan) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(300)});
  const absl::Status other = Try(Shared().Context("node-2"), "the-sender", "the-receiver");
  EXPECT_FALSE(other.ok());
  const absl::Status right = Try(receiver_tls_, "the-sender", "the-receiver");
  EXPECT_TRUE(right.ok()) << right;
}

TEST_F(TlsTest, ARevokedCertificateIsRefusedByEitherEnd) {
  const TestCertificates mine("the-sender=helper good=requestor stolen=requestor");
  mine.Revoke("stolen");
  const auto with_list = [&mine](const std::string& name) {
    TlsFiles files = mine.Files(name);
    files.crl = mine.Path("crl.pem");
    return TlsContext::Create(files).value();
  };
  sender_tls_ = with_list("the-sender");
  StartServer({});
  EXPECT_TRUE(Try(mine.Context("good")).ok());
  ExpectRefusedByPeer(Try(mine.Context("stolen")));
  sender_tls_ = mine.Context("the-sender");
  StartServer({});
  EXPECT_TRUE(Try(with_list("good")).ok());
  mine.Revoke("the-sender");
  const absl::Status status = Try(with_list("good"));
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the certificate of 'the-sender' is revoked"));
}

TEST(TlsContext, ListsThatCannotBeUsedAreRefused) {
  const TestCertificates mine("node=helper");
  const TestCertificates foreign("node=helper");
  foreign.Revoke("node");
  TlsFiles files = mine.Files("node");
  for (const std::string& crl :
       {mine.Path("none.pem"), mine.Path("ca.pem"), foreign.Path("crl.pem")}) {
    files.crl = crl;
    const absl::Status status = TlsContext::Create(files).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << crl << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(crl));
  }
  EXPECT_FALSE(CheckComplete({.ca = "", .certificate = "", .key = "", .crl = "x"}).ok());
}

// A daemon checks its configuration, and then takes it.
TEST(TlsContext, AListThatIsDueIsLoggedOnce) {
  const TestCertificates mine("node=helper stolen=requestor");
  mine.Revoke("stolen");
  const std::string book = mine.Path("book.cnf");
  std::ofstream(book) << "[ca]\ndefault_ca=own\n[own]\ndefault_md=sha256\ndatabase="
                      << mine.Path("revoked.txt") << "\n";
  TlsFiles files = mine.Files("node");
  files.crl = mine.Path("old.pem");
  const std::string command = "openssl ca -config " + book + " -cert " + mine.Path("ca.pem") +
                              " -keyfile " + mine.Path("ca.key") +
                              " -gencrl -crl_lastupdate 20250101000000Z -crl_nextupdate "
                              "20250201000000Z -out " +
                              files.crl + " 2>/dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(TlsContext::Check(files).ok());
  EXPECT_TRUE(TlsContext::Create(files).ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("[^\n]* WARNING tls.crl_old crl=[^\n]*old.pem[^\n]*\n"));
}

TEST(TlsContext, AFileOfTooManyListsIsRefused) {
  const TestCertificates mine("node=helper stolen=requestor");
  mine.Revoke("stolen");
  std::ostringstream list;
  list << std::ifstream(mine.Path("crl.pem")).rdbuf();
  TlsFiles files = mine.Files("node");
  files.crl = mine.Path("many.pem");
  for (size_t i = 0; i < TlsFacts::kMostLists; ++i) {
    std::ofstream(files.crl, std::ios::app) << list.str();
  }
  EXPECT_TRUE(TlsContext::Create(files).ok());
  std::ofstream(files.crl, std::ios::app) << list.str();
  const absl::Status status = TlsContext::Create(files).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 32 lists"));
}

TEST_F(TlsTest, TheSenderMustBeAHelper) {
  sender_tls_ = Shared().Context("ann");
  StartServer({});
  const absl::Status status = Try(receiver_tls_, "ann");
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("needs one of the roles helper; it has operator"));
}

TEST_F(TlsTest, AnotherCaIsNotBelievedByEitherEnd) {
  const TestCertificates foreign("the-sender=helper the-receiver=requestor");
  ExpectRefusedByPeer(
      Try(TlsContext::Create({Shared().Path("ca.pem"), foreign.Path("the-receiver.pem"),
                              foreign.Path("the-receiver.key")})
              .value()));
  sender_tls_ = foreign.Context("the-sender");
  StartServer({});
  const absl::Status status = Try(receiver_tls_);
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("certificate is not valid"));
}

TEST_F(TlsTest, AnExpiredCertificateIsRefused) {
  const TestCertificates mine("the-sender=helper fresh=requestor");
  mine.Make("old=requestor", "--days -1");
  sender_tls_ = mine.Context("the-sender");
  StartServer({});
  EXPECT_TRUE(Try(mine.Context("fresh")).ok());
  ExpectRefusedByPeer(Try(mine.Context("old")));
}

TEST_F(TlsTest, ACertificateThatEndsSoonIsLoggedOnce) {
  const TestCertificates mine("fresh=requestor");
  mine.Make("short=requestor", "--days 5");
  testing::internal::CaptureStderr();
  for (const char* name : {"fresh", "short"}) {
    const auto context = mine.Context(name);
    for (int i = 0; i < 3; ++i) context->LookAtFiles();
  }
  EXPECT_THAT(
      testing::internal::GetCapturedStderr(),
      MatchesRegex(".* WARNING tls.certificate_ends certificate=.*short.pem ca=.* days=5\n"));
}

TEST_F(TlsTest, PlainTcpIsRefused) {
  Offer();
  const UniqueFd stranger = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(stranger.get(), HelloBytes(TheHello())));
  // An alert, and the end.
  EXPECT_LT(RawReceive(stranger.get(), 100).size(), 30u);
  EXPECT_FALSE(sender_->TrySend(Header(0, 1), Bytes{1}, SliceSender::Next::kUnknown).value());
}

TEST_F(TlsTest, APeerThatStopsInTheHandshakeIsClosedInTime) {
  StartServer({.handshake_timeout = std::chrono::milliseconds(200)});
  const UniqueFd silent = RawConnect(server_->address());
  const UniqueFd half = RawConnect(server_->address());
  ASSERT_TRUE(RawSend(half.get(), Bytes{0x16, 0x03, 0x01, 0x02, 0x00, 0x01}));
  EXPECT_TRUE(ClosedByPeer(silent.get()));
  EXPECT_TRUE(ClosedByPeer(half.get()));
}

TEST_F(TlsTest, TheWireCarriesNoPlainText) {
  RawSender listener;
  HopInput input{TheHello().edge, TheHello().token, listener.address(), "the-sender", {}, {}};
  auto receiver = transport_->Connect(input, {1, 1}).value();
  Bytes got(1);
  ASSERT_TRUE(WaitFor(receiver->poll_fd().fd, POLLOUT));
  EXPECT_FALSE(receiver->TryReceive(Header(0, 1), got).value());
  EXPECT_FALSE(listener.Accept().ok()) << "a TLS ClientHello, not a hello";
}

TEST_F(TlsTest, NewFilesAreUsedWithoutARestart) {
  const TestCertificates mine("the-sender=helper app=requestor");
  sender_tls_ = mine.Context("the-sender");
  StartServer({});
  const auto app = mine.Context("app");
  EXPECT_TRUE(Try(app).ok());
  // A new CA: the old certificates are worth nothing from then on.
  std::filesystem::remove(mine.Path("ca.pem"));
  mine.Make("the-sender=helper other=requestor");
  const auto other = mine.Context("other");
  const TimePoint patience = Clock::System().Now() + std::chrono::seconds(20);
  absl::Status status = Try(other);
  while (!status.ok() && Clock::System().Now() < patience) status = Try(other);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(TlsTest, FilesThatCannotBeUsedLeaveTheOldOnesInUse) {
  const TestCertificates mine("the-sender=helper app=requestor");
  sender_tls_ = mine.Context("the-sender");
  StartServer({});
  std::ofstream(mine.Path("the-sender.pem"), std::ios::trunc) << "no certificate\n";
  const TimePoint after_a_look = Clock::System().Now() + std::chrono::milliseconds(1500);
  const auto app = mine.Context("app");
  do {
    const absl::Status status = Try(app);
    ASSERT_TRUE(status.ok()) << status;
  } while (Clock::System().Now() < after_a_look);
}

// As a long list of revoked ones does, but for as long as the test likes.
TEST(TlsContext, NobodyWaitsForFilesThatAreBeingRead) {
  const TestCertificates mine("node=helper stolen=requestor");
  mine.Revoke("stolen");
  TlsFiles files = mine.Files("node");
  files.crl = mine.Path("crl.pem");
  const auto context = TlsContext::Create(files).value();
  std::filesystem::remove(files.crl);
  ASSERT_EQ(::mkfifo(files.crl.c_str(), 0600), 0);
  UniqueFd writer;
  for (int i = 0; i < 400 && !writer.valid(); ++i) {
    writer = UniqueFd(::open(files.crl.c_str(), O_WRONLY | O_NONBLOCK));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // sleep-ok: looked at each second
  }
  ASSERT_TRUE(writer.valid()) << "nobody reads";
  auto begun = std::async(std::launch::async, [&] {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    return context->Accept(socket.get(), {Role::kHelper}) != nullptr;
  });
  EXPECT_EQ(begun.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  writer.reset();
  EXPECT_TRUE(begun.get());
}

TEST(TlsContext, RefusesWhatItCannotUseAndNamesIt) {
  const TestCertificates& shared = TestCertificates::Shared();
  const TlsFiles good = shared.Files("ann");
  const auto refusal = [](const TlsFiles& files) {
    const absl::Status status = TlsContext::Create(files).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  TlsFiles files = good;
  files.ca = "/no/such/ca.pem";
  EXPECT_THAT(refusal(files), HasSubstr("/no/such/ca.pem: No such file or directory"));
  files = good;
  files.certificate = good.key;
  EXPECT_THAT(refusal(files), HasSubstr("certificate file " + good.key));
  files = good;
  files.key = shared.Files("head").key;
  EXPECT_THAT(refusal(files), HasSubstr(files.key));
}

TEST(TlsContext, RefusesAKeyThatOthersMayOpen) {
  const TestCertificates mine("node-2=helper");
  const TlsFiles files{mine.Path("ca.pem"), mine.Path("node-2.pem"), mine.Path("node-2.key")};
  for (const auto& [mode, good] : {std::pair(0600, true),
                                   {0640, true},
                                   {0400, true},
                                   {0644, false},
                                   {0604, false},
                                   {0660, false},
                                   {0601, false}}) {
    ASSERT_EQ(::chmod(files.key.c_str(), static_cast<mode_t>(mode)), 0);
    const absl::Status status = TlsContext::Create(files).status();
    EXPECT_EQ(status.ok(), good) << std::oct << mode << " " << status;
    if (!good) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 640"));
    }
  }
}

TEST(TlsFiles, AreAllThreeOrNone) {
  EXPECT_TRUE(CheckComplete({}).ok());
  EXPECT_TRUE(CheckComplete({"a", "b", "c"}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckComplete({"a", "", "c"})));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckComplete({"", "b", "c"})));
  EXPECT_EQ(TlsContext::CreateIfEnabled({}).value(), nullptr);
}

TEST(TlsFiles, AreTheSectionTlsOfAConfiguration) {
  Config config = Config::Parse("[tls]\nca=\"a\"\ncertificate=\"b\"\nkey=\"c\"\n", "f").value();
  const TlsFiles files = ReadTlsFiles(config);
  EXPECT_TRUE(config.Finish().ok());
  EXPECT_EQ(files.ca + files.certificate + files.key, "abc");
  Config partial = Config::Parse("[tls]\nca=\"a\"\n", "f").value();
  ReadTlsFiles(partial);
  EXPECT_THAT(std::string(partial.Finish().message()),
              HasSubstr("f:1: tls: TLS needs three files"));
}

}  // namespace
}  // namespace ecpipe::tls_test
