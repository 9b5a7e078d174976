// SPDX-License-Identifier: Apache-2.0
#include "shim/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace ecpipe_qfs {
namespace {

// Between two attempts to get into the queue of a Unix socket that is full: nothing tells when
// there is room.
constexpr std::chrono::milliseconds kQueuePause{10};

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Failure Connection::Await(int fd, short events, SteadyClock::time_point deadline) const {
  while (true) {
    const auto rest =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    if (rest <= 0) {
      return {ECPIPE_QFS_DEADLINE_EXCEEDED,
              settings_.endpoint +
                  " did not answer in time. See whether ecpipe-helper "
                  "and its coordinator are well"};
    }
    pollfd polled[] = {{cancel_fd_, POLLIN, 0}, {fd, events, 0}};
    const int count = ::poll(polled, 2, static_cast<int>(std::min<int64_t>(rest, 1 << 30)));
    if (count < 0 && errno != EINTR) {
      return SystemFailure(ECPIPE_QFS_INTERNAL, "poll", errno, "Tell ECPipe's developers");
    }
    if (count > 0 && polled[0].revents != 0) {
      return {ECPIPE_QFS_CANCELLED, "the chunk's reader cancelled the repair"};
    }
    if (count > 0 && polled[1].revents != 0) return {};
  }
}

Failure Connection::Unreachable(int error_number) const {
  return SystemFailure(ECPIPE_QFS_UNAVAILABLE, "connect to " + settings_.endpoint, error_number,
                       "See whether ecpipe-helper runs on this host, with this [endpoint] address, "
                       "and whether this user may use the socket");
}

Failure Connection::Dial(SteadyClock::time_point deadline) {
  sockaddr_un path{};
  const auto* address = reinterpret_cast<const sockaddr*>(&settings_.tcp);
  socklen_t address_bytes = settings_.tcp_bytes;
  if (!settings_.unix_path.empty()) {
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path, settings_.unix_path.data(), settings_.unix_path.size());
    address = reinterpret_cast<const sockaddr*>(&path);
    address_bytes = sizeof path;
  }
  socket_.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_.valid()) {
    return SystemFailure(ECPIPE_QFS_RESOURCE_EXHAUSTED, "socket", errno,
                         "Raise the limit of open files");
  }
  while (::connect(socket_.get(), address, address_bytes) != 0) {
    if (errno == EAGAIN) {
      const Failure over = Await(-1, 0, std::min(deadline, SteadyClock::now() + kQueuePause));
      if (over.code == ECPIPE_QFS_CANCELLED || SteadyClock::now() >= deadline) return over;
    } else if (errno == EINPROGRESS || errno == EALREADY) {
      Failure over = Await(socket_.get(), POLLOUT, deadline);
      if (!over.ok()) return over;
      int error = 0;
      socklen_t bytes = sizeof error;
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
      return error == 0 ? Failure{} : Unreachable(error);
    } else if (errno != EINTR) {
      return Unreachable(errno);
    }
  }
  return {};
}

Failure Connection::Open(SteadyClock::time_point deadline) {
  Failure failed = Dial(deadline);
  if (!failed.ok() || !settings_.tls()) return failed;
  failed = TlsSession::Create(settings_, socket_.get(), &tls_);
  bool secured = false;
  while (failed.ok()) {
    failed = tls_->Handshake(&secured);
    if (!failed.ok() || secured) break;
    failed = Await(socket_.get(), tls_->wanted_events(), deadline);
  }
  return failed;
}

Failure Connection::Write(const uint8_t* bytes, size_t count, SteadyClock::time_point deadline) {
  while (count > 0) {
    const ssize_t sent =
        tls_ ? tls_->Write(bytes, count) : ::send(socket_.get(), bytes, count, MSG_NOSIGNAL);
    if (sent > 0) {
      bytes += sent;
      count -= static_cast<size_t>(sent);
    } else if (sent < 0 && WouldBlock()) {
      Failure over = Await(socket_.get(), tls_ ? tls_->wanted_events() : POLLOUT, deadline);
      if (!over.ok()) return over;
    } else {
      return tls_ ? tls_->failure() : Unreachable(errno);
    }
  }
  return {};
}

Failure Connection::ReadFully(uint8_t* bytes, size_t count, SteadyClock::time_point deadline) {
  while (count > 0) {
    const ssize_t got = tls_ ? tls_->Read(bytes, count) : ::recv(socket_.get(), bytes, count, 0);
    if (got > 0) {
      bytes += got;
      count -= static_cast<size_t>(got);
    } else if (got < 0 && WouldBlock()) {
      Failure over = Await(socket_.get(), tls_ ? tls_->wanted_events() : POLLIN, deadline);
      if (!over.ok()) return over;
    } else if (got == 0) {
      return {ECPIPE_QFS_UNAVAILABLE, settings_.endpoint +
                                          " closed the connection before the repair had ended. The "
                                          "log of ecpipe-helper says why"};
    } else {
      return tls_ ? tls_->failure() : Unreachable(errno);
    }
  }
  return {};
}

}  // namespace ecpipe_qfs
