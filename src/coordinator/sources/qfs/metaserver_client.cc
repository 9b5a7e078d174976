// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/qfs/metaserver_client.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/status.h"
#include "net/dialler.h"
#include "net/tcp_socket.h"

namespace ecpipe {

absl::StatusOr<MetaServerClient> MetaServerClient::Connect(const std::string& address,
                                                           TimePoint deadline) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  absl::StatusOr<UniqueFd> fd = Dialler::Connect(host_port, deadline);
  if (!fd.ok()) return Annotate(fd.status(), "metaserver " + address);
  return MetaServerClient(address, StreamSocket(*std::move(fd)), deadline);
}

absl::Status MetaServerClient::Await(short events) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::System().Now());
    if (left.count() <= 0) {
      return absl::DeadlineExceededError("metaserver " + address_ + " has not answered in time");
    }
    pollfd polled{socket_.fd(), events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(left.count()) + 1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "poll " + address_);
  }
}

absl::Status MetaServerClient::Send(const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const iovec part{const_cast<char*>(text.data()) + sent, text.size() - sent};
    const ssize_t count = socket_.Send(&part, 1, 0);
    if (count > 0) {
      sent += static_cast<size_t>(count);
    } else if (WouldBlock()) {
      ECPIPE_RETURN_IF_ERROR(Await(POLLOUT));
    } else {
      return absl::UnavailableError("metaserver " + address_ + " has closed the connection");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<MetaAnswer> MetaServerClient::Ask(const std::string& name, const MetaFields& fields,
                                                 const std::string& what) {
  const uint64_t sequence = ++sequence_;
  ECPIPE_RETURN_IF_ERROR(Send(MetaRequest(name, sequence, fields)));
  MetaAnswerParser parser(sequence);
  std::array<char, 16 << 10> buffer{};
  while (true) {
    const iovec part{buffer.data(), buffer.size()};
    const ssize_t count = socket_.Read(&part, 1);
    if (count < 0 && WouldBlock()) {
      ECPIPE_RETURN_IF_ERROR(Await(POLLIN));
      continue;
    }
    if (count <= 0) {
      return absl::UnavailableError("metaserver " + address_ + " has closed the connection");
    }
    ECPIPE_ASSIGN_OR_RETURN(const bool complete, parser.Add(std::string_view(
                                                     buffer.data(), static_cast<size_t>(count))));
    if (!complete) continue;
    ECPIPE_RETURN_IF_ERROR(StatusOfAnswer(parser.answer(), what));
    return parser.answer();
  }
}

}  // namespace ecpipe
