// SPDX-License-Identifier: Apache-2.0
#include "net/stream_socket.h"

#include <sys/socket.h>

#include <cerrno>

#include "base/status.h"

namespace ecpipe {
namespace {

// One call a part, for as long as a part goes whole: TLS knows no vectors.
template <typename Transfer>
ssize_t EachPart(const iovec* parts, int count, Transfer transfer) {
  ssize_t total = 0;
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len == 0) continue;
    const ssize_t done =
        transfer(static_cast<uint8_t*>(parts[i].iov_base), parts[i].iov_len, i + 1 == count);
    if (done <= 0) return total > 0 ? total : done;
    total += done;
    if (done < static_cast<ssize_t>(parts[i].iov_len)) break;
  }
  return total;
}

}  // namespace

absl::StatusOr<bool> StreamSocket::Handshake() {
  if (tls_ == nullptr) return true;
  return tls_->Handshake();
}

ssize_t StreamSocket::Read(const iovec* parts, int count) {
  if (tls_ == nullptr) return ::readv(fd_.get(), parts, count);
  return EachPart(parts, count,
                  [this](uint8_t* bytes, size_t size, bool) { return tls_->Read({bytes, size}); });
}

ssize_t StreamSocket::Send(const iovec* parts, int count, int flags) {
  if (tls_ == nullptr) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<size_t>(count);
    return ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | flags);
  }
  return EachPart(parts, count, [this, flags](uint8_t* bytes, size_t size, bool last) {
    return tls_->Write({bytes, size}, last ? flags : MSG_MORE);
  });
}

absl::Status StreamSocket::Error(int errno_value, const std::string& what) const {
  if (tls_ != nullptr && !tls_->error().ok()) return Annotate(tls_->error(), what);
  return ErrnoStatus(errno_value, what);
}

bool StreamSocket::PeerEndedOrSpoke() const {
  if (tls_ != nullptr && tls_->has_unread()) return true;
  uint8_t byte = 0;
  const ssize_t got = ::recv(fd_.get(), &byte, 1, MSG_PEEK);
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void StreamSocket::SendCloseNotify() {
  if (tls_ != nullptr) tls_->SendCloseNotify();
}

}  // namespace ecpipe
