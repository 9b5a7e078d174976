// SPDX-License-Identifier: Apache-2.0
#include "rpc/examine/port_check.h"

#include <poll.h>

#include <optional>
#include <utility>

#include "base/simulator.h"
#include "base/status.h"
#include "net/dialler.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

// One address: its connection while that is being made, or how it ended.
class Check {
 public:
  Check(const std::string& address, HostLookups* lookups) {
    const absl::StatusOr<HostPort> host_port = ParseHostPort(address);
    if (!host_port.ok()) {
      answer_ = host_port.status();
      return;
    }
    absl::StatusOr<Dialler> dialler = Dialler::Begin(*host_port, lookups);
    if (dialler.ok()) {
      dialler_ = *std::move(dialler);
    } else {
      answer_ = dialler.status();
    }
  }

  bool ended() const { return !dialler_; }
  pollfd poll_fd() const { return ended() ? pollfd{-1, 0, 0} : dialler_->poll_fd(); }
  void Step() {
    const absl::StatusOr<UniqueFd> fd = dialler_->Step();
    if (fd.ok() && !fd->valid()) return;
    answer_ = fd.status();
    dialler_.reset();
  }
  absl::Status Answer() const { return ended() ? answer_ : dialler_->NoAnswer(); }

 private:
  std::optional<Dialler> dialler_;
  absl::Status answer_;
};

}  // namespace

std::vector<absl::Status> CheckPorts(const std::vector<std::string>& addresses, Duration timeout,
                                     HostLookups* lookups) {
  const TimePoint end = Clock::System().Now() + timeout;
  std::vector<Check> checks;
  for (const std::string& address : addresses) checks.emplace_back(address, lookups);
  while (true) {
    std::vector<pollfd> polled;
    bool waits = false;
    for (Check& check : checks) {
      if (!check.ended()) check.Step();
      waits |= !check.ended();
      polled.push_back(check.poll_fd());
    }
    const Duration left = end - Clock::System().Now();
    if (!waits || left <= Duration(0)) break;
    Poll(polled, left);
  }
  std::vector<absl::Status> answers;
  for (const Check& check : checks) answers.push_back(check.Answer());
  return answers;
}

}  // namespace ecpipe
