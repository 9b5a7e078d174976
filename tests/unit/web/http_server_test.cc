// SPDX-License-Identifier: Apache-2.0
#include "web/http_server.h"

#include <curl/curl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "fakes/accept_hook.h"
#include "net/tcp_socket.h"
#include "unit/net/test_certificates.h"
#include "web/daemon_pages.h"

namespace ecpipe::http_server_test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

struct Answer {
  CURLcode result = CURLE_OK;
  long status = 0;
  std::string body;
  std::string headers;
};

size_t Append(char* bytes, size_t, size_t count, void* to) {
  static_cast<std::string*>(to)->append(bytes, count);
  return count;
}

// `who`: the certificate that the client shows, and the CA that it trusts.
Answer Ask(const std::string& url, const TlsFiles& who = {}, const char* method = "GET") {
  Answer answer;
  CURL* curl = curl_easy_init();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);  // certificates name nodes, no hosts
  if (!who.ca.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, who.ca.c_str());
  if (!who.certificate.empty()) {
    curl_easy_setopt(curl, CURLOPT_SSLCERT, who.certificate.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLKEY, who.key.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &answer.headers);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, Append);
  answer.result = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
  curl_easy_cleanup(curl);
  return answer;
}

std::unique_ptr<HttpServer> Serve(std::shared_ptr<TlsContext> tls = nullptr) {
  return HttpServer::Start(
             "127.0.0.1:0", std::move(tls),
             {{"/page", [] { return HttpReply{200, "text/plain", "hello\n"}; }},
              {"/document",
               [] { return HttpReply{200, "text/html", "hello\n", "script-src 'self'"}; }}})
      .value();
}

class RawClient {
 public:
  explicit RawClient(const std::string& address)
      : fd_(StartConnect(ParseHostPort(address).value()).value()) {
    pollfd polled{fd_.get(), POLLOUT, 0};
    EXPECT_EQ(::poll(&polled, 1, 60'000), 1);
  }
  void Send(const std::string& text) const {
    ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  // Whether the server ends the connection; whether it says something before is not looked at.
  bool EndsWithin(int millis) const {
    pollfd polled{fd_.get(), POLLRDHUP, 0};
    return ::poll(&polled, 1, millis) == 1;
  }
  std::string Rest() const {
    std::string text;
    char bytes[4096];
    EXPECT_TRUE(EndsWithin(60'000));
    for (ssize_t got = 1; got > 0;) {
      got = ::recv(fd_.get(), bytes, sizeof bytes, 0);
      if (got > 0) text.append(bytes, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  const UniqueFd fd_;
};

TEST(HttpServerTest, ServesItsPagesAndNothingElse) {
  const auto server = Serve();
  const std::string url = "http://" + server->address();
  EXPECT_EQ(Ask(url + "/page").body, "hello\n");
  EXPECT_EQ(Ask(url + "/page?x=1").status, 200);
  EXPECT_EQ(Ask(url + "/../etc/passwd").status, 404);
  EXPECT_EQ(Ask(url + "/" + std::string(5000, 'a')).status, 404);
  EXPECT_EQ(Ask(url + "/page", {}, "POST").status, 405);
  EXPECT_EQ(Ask(url + "/page", {}, "DELETE").status, 405);
}

TEST(HttpServerTest, ABrowserRunsNothingOfAPage) {
  const auto server = Serve();
  for (const char* path : {"/page", "/nothing"}) {
    const std::string headers = Ask("http://" + server->address() + path).headers;
    EXPECT_THAT(headers, HasSubstr("Content-Security-Policy: default-src 'none'"));
    EXPECT_THAT(headers, HasSubstr("X-Content-Type-Options: nosniff"));
    EXPECT_THAT(headers, HasSubstr("Referrer-Policy: no-referrer"));
    EXPECT_THAT(headers, HasSubstr("Cache-Control: no-store"));
  }
  EXPECT_THAT(Ask("http://" + server->address() + "/document").headers,
              HasSubstr("Content-Security-Policy: script-src 'self'\r\n"));
}

TEST(HttpServerTest, PortThatIsTakenIsNamed) {
  const auto server = Serve();
  const auto second = HttpServer::Start(server->address(), nullptr, {});
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(server->address()));
}

TEST(HttpServerTest, EndsWhileConnectionsAreSilent) {
  auto server = Serve();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(StartConnect(ParseHostPort(server->address()).value()).value());
  }
  server.reset();
}

TEST(HttpServerTest, AnswersWhileOthersAreSilent) {
  const auto server = Serve();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(StartConnect(ParseHostPort(server->address()).value()).value());
  }
  EXPECT_EQ(Ask("http://" + server->address() + "/page").status, 200);
}

TEST(HttpServerTest, ARequestThatComesByteByByteIsGivenUp) {
  const auto server = Serve();
  const RawClient slow(server->address());
  int tenths = 0;
  while (tenths < 300 && !slow.EndsWithin(100)) {
    slow.Send("G");
    ++tenths;
  }
  EXPECT_LT(tenths, 300);
}

TEST(HttpServerTest, WhoWaitsForAPageGivesWayToOthers) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  const auto server = HttpServer::Start("127.0.0.1:0", nullptr,
                                        {{"/page",
                                          [&] {
                                            gone.wait();
                                            return HttpReply();
                                          }}})
                          .value();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->address()));
    clients.back()->Send("GET /page HTTP/1.1\r\n\r\n");
  }
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(clients[i]->EndsWithin(60'000)) << i;
  go.set_value();
  for (size_t i = 8; i < 40; ++i) EXPECT_THAT(clients[i]->Rest(), HasSubstr(" 200 OK")) << i;
}

TEST(HttpServerTest, WhatIsNoRequestIsToldSo) {
  const auto server = Serve();
  const auto answer = [&](const std::string& said) {
    const RawClient client(server->address());
    client.Send(said);
    return client.Rest();
  };
  EXPECT_THAT(answer("hello\r\n\r\n"), HasSubstr(" 400 "));
  EXPECT_THAT(answer("GET /page HTTP/2\r\n\r\n"), HasSubstr(" 400 "));
  EXPECT_THAT(answer("\r\n\r\n"), HasSubstr(" 400 "));
  EXPECT_THAT(answer(std::string(16 << 10, 'a')), HasSubstr(" 431 "));
  EXPECT_THAT(answer("GET /page HTTP/1.0\r\nA: b\r\n\r\n"), EndsWith("\r\n\r\nhello\n"));
  const std::string head = answer("HEAD /page HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nContent-Length: 6\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, APageThatThrowsIsAnErrorAndTheOthersGoOn) {
  const auto server =
      HttpServer::Start("127.0.0.1:0", nullptr,
                        {{"/page", [] { return HttpReply(); }},
                         {"/bad", []() -> HttpReply { throw std::runtime_error("no"); }}})
          .value();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask("http://" + server->address() + "/bad").status, 500);
  EXPECT_EQ(Ask("http://" + server->address() + "/page").status, 200);
}

TEST(HttpServerTest, ErrorsOfAcceptDoNotEndIt) {
  constexpr int kErrors[] = {ENFILE, EMFILE, ENOMEM, ENOBUFS, ECONNABORTED, EINTR};
  std::atomic<size_t> calls = 0;
  const HookedAccept hooked([&](int) {
    const size_t call = calls++;
    return call < std::size(kErrors) ? kErrors[call] : 0;
  });
  const auto server = Serve();
  EXPECT_EQ(Ask("http://" + server->address() + "/page").body, "hello\n");
  EXPECT_GT(calls, std::size(kErrors));
}

TEST(HttpServerTest, EndsWhileAcceptFails) {
  std::atomic<int> calls = 0;
  const HookedAccept hooked([&](int) {
    ++calls;
    return ENFILE;
  });
  auto server = Serve();
  const RawClient waiting(server->address());
  while (calls < 2) std::this_thread::yield();
  server.reset();
}

TEST(HttpServerTest, TlsWantsACertificateOfItsCa) {
  const TestCertificates& ours = TestCertificates::Shared();
  const auto server = Serve(ours.Context("head"));
  const std::string url = "https://" + server->address() + "/page";
  const TlsFiles ann = ours.Files("ann");
  EXPECT_EQ(Ask(url, ann).body, "hello\n");
  EXPECT_NE(Ask(url, {ann.ca, "", ""}).result, CURLE_OK) << "no certificate";
  const TestCertificates others("eve=operator");
  TlsFiles eve = others.Files("eve");
  eve.ca = ann.ca;
  EXPECT_NE(Ask(url, eve).result, CURLE_OK) << "another CA's certificate";
  EXPECT_NE(Ask("http://" + server->address() + "/page").status, 200);
}

TEST(HttpServerTest, ARevokedCertificateReadsNothing) {
  const TestCertificates mine("head=coordinator ann=operator bob=operator");
  mine.Revoke("bob");
  TlsFiles files = mine.Files("head");
  files.crl = mine.Path("crl.pem");
  const auto server = Serve(TlsContext::Create(files).value());
  const std::string url = "https://" + server->address() + "/page";
  EXPECT_EQ(Ask(url, mine.Files("ann")).body, "hello\n");
  EXPECT_EQ(Ask(url, mine.Files("bob")).body, "");
  mine.Revoke("ann");
  std::string body = "hello\n";
  for (int i = 0; i < 200 && !body.empty(); ++i) {
    body = Ask(url, mine.Files("ann")).body;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // sleep-ok: looked at each second
  }
  EXPECT_EQ(body, "");
}

TEST(HttpServerTest, NewCertificatesAreUsedWithoutARestart) {
  const TestCertificates files("head=coordinator ann=operator");
  const auto context = files.Context("head");
  const auto server = Serve(context);
  const int64_t before = context->ExpiryUnixSeconds();
  EXPECT_GT(before, std::time(nullptr));
  // A new CA, too: the server must trust what it signs.
  std::filesystem::remove(files.Path("ca.pem"));
  std::filesystem::remove(files.Path("ca.key"));
  for (const char* name : {"head", "ann"}) {
    std::filesystem::remove(files.Path(std::string(name) + ".pem"));
    std::filesystem::remove(files.Path(std::string(name) + ".key"));
  }
  files.Make("head=coordinator ann=operator");
  const TlsFiles ann = files.Files("ann");
  long status = 0;
  for (int i = 0; i < 200 && status != 200; ++i) {
    status = Ask("https://" + server->address() + "/page", ann).status;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // sleep-ok: looked at each second
  }
  EXPECT_EQ(status, 200);
}

TEST(WebOptionsTest, OtherHostsNeedTlsOrAnInsecureOperator) {
  EXPECT_TRUE(CheckWebOptions({"", false}, false, false).ok());
  EXPECT_TRUE(CheckWebOptions({"127.0.0.1:1", false}, false, false).ok());
  EXPECT_TRUE(CheckWebOptions({"0.0.0.0:1", true}, true, false).ok());
  EXPECT_TRUE(CheckWebOptions({"0.0.0.0:1", false}, true, true).ok());
  EXPECT_FALSE(CheckWebOptions({"0.0.0.0:1", false}, true, false).ok());
  EXPECT_FALSE(CheckWebOptions({"127.0.0.1:1", true}, false, true).ok()) << "no files";
}

TEST(DaemonPagesTest, HealthSaysWhatIsWrong) {
  Metrics metrics;
  const auto server =
      ServeDaemonPages({"127.0.0.1:0", false}, nullptr, &metrics,
                       {[] { return absl::OkStatus(); },
                        [] { return absl::UnavailableError("it is not registered"); }})
          .value();
  const std::string url = "http://" + server->address();
  EXPECT_EQ(Ask(url + "/healthz").status, 200);
  const Answer ready = Ask(url + "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, "it is not registered\n");
  EXPECT_THAT(Ask(url + "/metrics").body, HasSubstr("ecpipe_build_info"));
}

}  // namespace
}  // namespace ecpipe::http_server_test
