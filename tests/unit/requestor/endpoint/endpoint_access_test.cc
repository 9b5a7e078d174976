// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint_access.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "unit/requestor/endpoint/endpoint_fixture.h"

namespace ecpipe::endpoint_access_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

const std::string& kUnix = *new std::string("unix:/run/x.sock");
const std::string& kTcp = *new std::string("tcp:127.0.0.1:0");

EndpointPeer User(uid_t user) { return {user, {user}}; }

TEST(EndpointAccess, OnlyUsersAndGroupsThatAreNamed) {
  const auto named =
      EndpointAccess::Create({.allow_users = {"daemon"}, .allow_groups = {"sys"}}, kUnix);
  ASSERT_TRUE(named.ok()) << named.status();
  const uid_t user = ::getpwnam("daemon")->pw_uid;
  const gid_t group = ::getgrnam("sys")->gr_gid;
  EXPECT_TRUE(named->CheckPeer({user, {}}).ok());
  EXPECT_TRUE(named->CheckPeer({uid_t{54321}, {gid_t{1}, group}}).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(named->CheckPeer(User(54321))));
  EXPECT_TRUE(absl::IsPermissionDenied(named->CheckPeer({uid_t{0}, {gid_t{0}}}))) << "nor root";
  const auto open = EndpointAccess::Create({}, kUnix);
  EXPECT_TRUE(open->CheckPeer(User(54321)).ok()) << "the file's mode decides";
}

TEST(EndpointAccess, NamesThatDoNotExistAndKeysOfTheOtherKindAreRefused) {
  const auto refusal = [](const EndpointAccess::Options& options, const std::string& address) {
    return EndpointAccess::Create(options, address).status();
  };
  // Whoever knows the users, such as SSSD at boot, may know it later.
  for (const auto& [options, key] : std::vector<std::pair<EndpointAccess::Options, std::string>>{
           {{.allow_users = {"nobody-of-that-name"}}, "allow_users"},
           {{.allow_groups = {"nobody-of-that-name"}}, "allow_groups"},
           {{.first_users = {"nobody-of-that-name"}}, "first_users"}}) {
    const absl::Status status = refusal(options, kUnix);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  }
  const absl::Status no_users = refusal({.allow_users = {"daemon"}}, kTcp);
  EXPECT_TRUE(absl::IsInvalidArgument(no_users)) << no_users;
  EXPECT_THAT(std::string(no_users.message()), HasSubstr("cookie"));
  const absl::Status for_all = refusal({.cookie = "/x", .cookie_mode = 0644}, kTcp);
  EXPECT_TRUE(absl::IsInvalidArgument(for_all)) << for_all;
  EXPECT_THAT(std::string(for_all.message()), HasSubstr("cookie_mode"));
}

TEST(EndpointAccess, RoomIsKeptForThoseWhoAreFirst) {
  const auto access = EndpointAccess::Create({.first_users = {"daemon"}}, kUnix);
  const EndpointPeer first = User(::getpwnam("daemon")->pw_uid);
  std::vector<EndpointPeer> open(4, User(54321));
  EXPECT_TRUE(absl::IsResourceExhausted(access->CheckRoom(User(54321), open, 8))) << "half";
  EXPECT_TRUE(access->CheckRoom(User(54322), open, 8).ok());
  open.insert(open.end(), 2, User(54322));
  EXPECT_TRUE(absl::IsResourceExhausted(access->CheckRoom(User(54323), open, 8))) << "3/4";
  EXPECT_TRUE(access->CheckRoom(first, open, 8).ok());
  open.insert(open.end(), 2, first);
  EXPECT_TRUE(absl::IsResourceExhausted(access->CheckRoom(first, open, 8))) << "all";
  EXPECT_TRUE(access->CheckRoom(User(54321), {}, 1).ok());
}

TEST(EndpointAccess, AnAddressOfAnotherHostHasAUsersShare) {
  const auto access = EndpointAccess::Create({}, kTcp);
  const auto from = [](const char* origin) { return EndpointPeer{std::nullopt, {}, origin}; };
  const std::vector<EndpointPeer> open(4, from("192.0.2.1"));
  EXPECT_TRUE(absl::IsResourceExhausted(access->CheckRoom(from("192.0.2.1"), open, 8)));
  EXPECT_TRUE(access->CheckRoom(from("192.0.2.2"), open, 8).ok());
  EXPECT_TRUE(access->CheckRoom(from(""), std::vector<EndpointPeer>(4, from("")), 8).ok());
}

class EndpointCookie : public EndpointTest {
 protected:
  std::string Cookie() {
    std::string secret;
    std::getline(std::ifstream(path_), secret);
    return secret;
  }
  void StartOnTcp() {
    Start([this](Endpoint::Options* options) {
      options->address = kTcp;
      options->access.cookie = path_;
    });
  }

  const std::string path_ = scratch_.File("cookie");
};

TEST_F(EndpointCookie, TcpOnLoopbackWantsOne) {
  const absl::Status open = Endpoint::Start({.address = kTcp}, nullptr).status();
  EXPECT_TRUE(absl::IsInvalidArgument(open)) << open;
  EXPECT_THAT(open.message(), HasSubstr("open to every user of this host"));
}

TEST_F(EndpointCookie, IsAFileOfItsOwnerAndANewOneAtEachStart) {
  ::umask(0);
  StartOnTcp();
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const std::string before = Cookie();
  EXPECT_EQ(before.size(), 64u);
  endpoint_.reset();
  StartOnTcp();
  EXPECT_NE(Cookie(), before);
}

TEST_F(EndpointCookie, MayBeAFileOfItsGroup) {
  Start([this](Endpoint::Options* options) {
    options->address = kTcp;
    options->access.cookie = path_;
    options->access.cookie_mode = 0640;
  });
  struct stat info{};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(EndpointCookie, OnlyWhoShowsItIsServed) {
  StartOnTcp();
  std::string other = Cookie();
  other.back() = other.back() == '0' ? '1' : '0';
  for (const std::string& shown :
       {std::string(), "cookie " + other + "\n", "cookie " + Cookie().substr(1) + "\n"}) {
    EndpointClient client(endpoint_->address());
    ASSERT_TRUE(client.Send(Request(1000, shown)));
    EXPECT_THAT(ErrorOf(&client), HasSubstr("code UNAUTHENTICATED")) << shown;
  }
  EXPECT_EQ(Settled().bad_requests, 3u);
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000, "cookie " + Cookie() + "\n")));
  EXPECT_EQ(client.Receive().type, 2);
}

TEST_F(EndpointTest, StrangersWhoDoNotAskGiveWay) {
  Start([](Endpoint::Options* options) {
    options->address = kTcp;
    options->insecure = true;
    options->max_connections = 2;
    options->session.request_timeout = std::chrono::seconds(600);
  });
  std::vector<std::unique_ptr<EndpointClient>> strangers;
  for (int i = 0; i < 5; ++i) {
    strangers.push_back(std::make_unique<EndpointClient>(endpoint_->address()));
  }
  EndpointClient client(endpoint_->address());
  ASSERT_TRUE(client.Send(Request(1000)));
  EXPECT_EQ(client.Receive().type, 2);
  EXPECT_EQ(strangers[0]->Receive().type, 0);
}

TEST_F(EndpointTest, WhoHasAskedGivesWayToNobody) {
  Start([](Endpoint::Options* options) {
    options->address = kTcp;
    options->insecure = true;
    options->max_connections = 1;
  });
  script_.lingers = true;
  EndpointClient first(endpoint_->address());
  ASSERT_TRUE(first.Send(Request(1000)));
  ASSERT_EQ(first.Receive().type, 2);
  EndpointClient second(endpoint_->address());
  EXPECT_THAT(ErrorOf(&second), HasSubstr("code RESOURCE_EXHAUSTED"));
  endpoint_.reset();
}

TEST_F(EndpointTest, EachRepairIsInTheLogWithItsUserItsBlockAndItsResult) {
  Start();
  testing::internal::CaptureStderr();
  for (const absl::Status& end : {absl::OkStatus(), absl::AbortedError("given up")}) {
    script_.end = end;
    EndpointClient client(endpoint_->address());
    ASSERT_TRUE(client.Send(Request(1000)));
    while (client.Receive().type != 0) {
    }
    Settled();
  }
  endpoint_.reset();
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string who = " user=" + std::to_string(::geteuid()) + " ";
  const std::string what = " block=BP-1.blk_-15_7 bytes=1000 ";
  EXPECT_THAT(said, ContainsRegex("INFO endpoint.end" + who + "[^\n]*" + what + "status=OK\n"));
  EXPECT_THAT(said, ContainsRegex("WARNING endpoint.end" + who + "[^\n]*" + what +
                                  "status=\"ABORTED: given up\"\n"));
}

TEST_F(EndpointTest, WhoMayNotAskIsToldSo) {
  Start([](Endpoint::Options* options) { options->access.allow_users = {"daemon"}; });
  if (::getpwnam("daemon")->pw_uid == ::geteuid()) GTEST_SKIP() << "runs as that user";
  EndpointClient client(endpoint_->address());
  EXPECT_THAT(ErrorOf(&client), HasSubstr("code PERMISSION_DENIED"));
  EXPECT_EQ(Settled().refused, 1u);
}

}  // namespace
}  // namespace ecpipe::endpoint_access_test
