// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/port_check.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

absl::StatusOr<UniqueFd> Dial(const std::string& address) {
  ECPIPE_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  return StartConnect(host_port);
}

}  // namespace

std::vector<absl::Status> CheckPorts(const std::vector<std::string>& addresses, Duration timeout) {
  std::vector<absl::Status> answers;
  std::vector<UniqueFd> dialled;
  std::vector<pollfd> polled;
  for (const std::string& address : addresses) {
    absl::StatusOr<UniqueFd> fd = Dial(address);
    answers.push_back(fd.ok() ? absl::DeadlineExceededError("no answer from " + address)
                              : fd.status());
    dialled.push_back(fd.ok() ? *std::move(fd) : UniqueFd());
    polled.push_back({dialled.back().get(), POLLOUT, 0});
  }
  const TimePoint end = Clock::System().Now() + timeout;
  while (std::any_of(polled.begin(), polled.end(), [](const pollfd& p) { return p.fd >= 0; })) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::System().Now());
    if (rest.count() <= 0) break;
    ::poll(polled.data(), polled.size(), static_cast<int>(rest.count()));
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      answers[i] = ConnectResult(polled[i].fd, addresses[i]);
      polled[i].fd = -1;
    }
  }
  return answers;
}

}  // namespace ecpipe
