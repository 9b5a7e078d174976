// SPDX-License-Identifier: Apache-2.0
#include "unit/qfs/fake_endpoint.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace ecpipe_qfs {
namespace {

// A test that cannot set its stage has nothing to say.
void Check(bool holds) {
  if (!holds) std::abort();
}

int AlwaysGood(int, X509_STORE_CTX*) { return 1; }

}  // namespace

FakeConnection::FakeConnection(ecpipe::UniqueFd fd, ssl_ctx_st* tls, int stop_fd)
    : fd_(std::move(fd)), stop_fd_(stop_fd) {
  if (tls != nullptr) Secure(tls);
}

FakeConnection::~FakeConnection() {
  if (ssl_ != nullptr) SSL_free(ssl_);
}

bool FakeConnection::Await(short events) {
  pollfd polled[] = {{stop_fd_, POLLIN, 0}, {fd_.get(), events, 0}};
  while (::poll(polled, 2, -1) < 0) Check(errno == EINTR);
  return polled[0].revents == 0;
}

bool FakeConnection::Secure(ssl_ctx_st* tls) {
  ssl_ = SSL_new(tls);
  Check(ssl_ != nullptr && SSL_set_fd(ssl_, fd_.get()) == 1);
  while (true) {
    const int result = SSL_accept(ssl_);
    if (result == 1) return true;
    const int kind = SSL_get_error(ssl_, result);
    if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) return false;
    if (!Await(kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT)) return false;
  }
}

std::string FakeConnection::ReadRequest() {
  std::string all;
  while (true) {
    char bytes[4096];
    const ssize_t got = ssl_ != nullptr ? SSL_read(ssl_, bytes, sizeof bytes)
                                        : ::recv(fd_.get(), bytes, sizeof bytes, 0);
    const bool again = ssl_ != nullptr ? got < 0 && SSL_get_error(ssl_, static_cast<int>(got)) ==
                                                        SSL_ERROR_WANT_READ
                                       : got < 0 && errno == EAGAIN;
    if (again) {
      if (!Await(POLLIN)) return "";
      continue;
    }
    if (got <= 0) return "";
    all.append(bytes, static_cast<size_t>(got));
    if (all.size() < kFrameHeaderBytes) continue;
    uint32_t length = 0;
    std::memcpy(&length, all.data() + 8, sizeof length);
    if (all.size() < kFrameHeaderBytes + length) continue;
    Check(all.size() == kFrameHeaderBytes + length);  // a client sends nothing else
    const std::string text = all.substr(kFrameHeaderBytes);
    const FrameHeaderBytes header = EncodeFrameHeader(
        FrameType::kRepair, reinterpret_cast<const uint8_t*>(text.data()), text.size());
    Check(std::equal(header.begin(), header.end(), reinterpret_cast<const uint8_t*>(all.data())));
    return text;
  }
}

bool FakeConnection::SendRaw(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t left = bytes.size() - at;
    const ssize_t sent = ssl_ != nullptr
                             ? SSL_write(ssl_, bytes.data() + at, static_cast<int>(left))
                             : ::send(fd_.get(), bytes.data() + at, left, MSG_NOSIGNAL);
    if (sent > 0) {
      at += static_cast<size_t>(sent);
      continue;
    }
    const bool again = ssl_ != nullptr
                           ? SSL_get_error(ssl_, static_cast<int>(sent)) == SSL_ERROR_WANT_WRITE
                           : errno == EAGAIN;
    if (!again || !Await(POLLOUT)) return false;
  }
  return true;
}

bool FakeConnection::Send(FrameType type, const std::string& payload) {
  const FrameHeaderBytes header =
      EncodeFrameHeader(type, reinterpret_cast<const uint8_t*>(payload.data()), payload.size());
  return SendRaw(std::string(header.begin(), header.end()) + payload);
}

bool FakeConnection::SendHeader(int64_t bytes) {
  return Send(FrameType::kHeader, "bytes " + std::to_string(bytes) +
                                      "\nchecksum crc32c 65536\nrepair 0123456789abcdef\n");
}

bool FakeConnection::SendData(const std::string& bytes, size_t frame_bytes) {
  for (size_t at = 0; at < bytes.size(); at += frame_bytes) {
    if (!Send(FrameType::kData, bytes.substr(at, frame_bytes))) return false;
  }
  return true;
}

bool FakeConnection::SendEnd(int64_t bytes) {
  return Send(FrameType::kEnd, "bytes " + std::to_string(bytes) + "\nattempts 1\n");
}

bool FakeConnection::AwaitClose() {
  char byte = 0;
  while (Await(POLLIN)) {
    const ssize_t got = ::recv(fd_.get(), &byte, 1, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
  }
  return false;
}

FakeEndpoint::FakeEndpoint(Script script, const Tls* tls)
    : script_(std::move(script)), stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
  if (tls != nullptr) {
    tls_ = SSL_CTX_new(TLS_server_method());
    Check(tls_ != nullptr && SSL_CTX_load_verify_file(tls_, tls->ca.c_str()) == 1);
    Check(SSL_CTX_use_certificate_chain_file(tls_, tls->certificate.c_str()) == 1);
    Check(SSL_CTX_use_PrivateKey_file(tls_, tls->key.c_str(), SSL_FILETYPE_PEM) == 1);
    SSL_CTX_set_verify(tls_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, AlwaysGood);
    SSL_CTX_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  }
  Listen(tls != nullptr);
  acceptor_ = std::thread([this] { Accept(); });
}

void FakeEndpoint::Listen(bool tcp) {
  constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  listener_.reset(::socket(tcp ? AF_INET : AF_UNIX, kKind, 0));
  if (tcp) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    Check(::bind(listener_.get(), any, bytes) == 0);
    Check(::getsockname(listener_.get(), any, &bytes) == 0);
    address_ = "tcp:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  } else {
    char folder[] = "/tmp/ecpipe-qfs-XXXXXX";
    Check(::mkdtemp(folder) != nullptr);
    path_ = std::string(folder) + "/endpoint.sock";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    Check(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    address_ = "unix:" + path_;
  }
  Check(::listen(listener_.get(), SOMAXCONN) == 0);
}

FakeEndpoint::~FakeEndpoint() {
  const uint64_t one = 1;
  Check(::write(stop_fd_.get(), &one, sizeof one) == sizeof one);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  if (tls_ != nullptr) SSL_CTX_free(tls_);
  if (!path_.empty()) std::filesystem::remove_all(std::filesystem::path(path_).parent_path());
}

void FakeEndpoint::Accept() {
  while (true) {
    pollfd polled[] = {{stop_fd_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    while (::poll(polled, 2, -1) < 0) Check(errno == EINTR);
    if (polled[0].revents != 0) return;
    ecpipe::UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) continue;
    {
      const std::lock_guard lock(mutex_);
      ++connections_;
      changed_.notify_all();
    }
    threads_.emplace_back([this, raw = fd.release()] {
      // OpenSSL writes by write(). A SIGPIPE that is not ours must still end the test.
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      FakeConnection connection(ecpipe::UniqueFd(raw), tls_, stop_fd_.get());
      script_(connection);
    });
  }
}

void FakeEndpoint::AwaitConnections(int count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return connections_ >= count; });
}

int FakeEndpoint::connections() {
  const std::lock_guard lock(mutex_);
  return connections_;
}

}  // namespace ecpipe_qfs
