// SPDX-License-Identifier: Apache-2.0
#include "net/dialler.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/simulator.h"
#include "base/status.h"

namespace ecpipe {

absl::StatusOr<Dialler> Dialler::Begin(const HostPort& address, HostLookups* lookups) {
  Dialler dialler(address);
  dialler.lookup_ = lookups->Begin(address.host);
  dialler.lookup_until_ = Clock::System().Now() + kLookupPatience;
  const auto known = dialler.lookup_->Result();
  if (known) ECPIPE_RETURN_IF_ERROR(known->status());
  const bool one = known && (*known)->size() == 1;
  if (!one) {
    dialler.epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!dialler.epoll_.valid()) return ErrnoStatus(errno, "make an epoll set");
    dialler.timer_ = UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    if (!dialler.timer_.valid()) return ErrnoStatus(errno, "make a timer");
    epoll_event on_timer{.events = EPOLLIN, .data = {}};
    epoll_event on_lookup{.events = EPOLLIN, .data = {}};
    const int epoll = dialler.epoll_.get();
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, dialler.timer_.get(), &on_timer) != 0 ||
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, dialler.lookup_->fd(), &on_lookup) != 0) {
      return ErrnoStatus(errno, "connect to " + FormatHostPort(address));
    }
    if (!known) ECPIPE_RETURN_IF_ERROR(dialler.SetTimer(kLookupPatience));
  }
  if (known) ECPIPE_RETURN_IF_ERROR(dialler.TakeLookup());
  return dialler;
}

absl::Status Dialler::TakeLookup() {
  auto result = lookup_->Result();
  if (!result) {
    if (Clock::System().Now() < lookup_until_) return absl::OkStatus();
    return HostLookups::NoAnswer(address_.host);
  }
  if (epoll_.valid()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, lookup_->fd(), nullptr);
  lookup_ = nullptr;
  ECPIPE_RETURN_IF_ERROR(result->status());
  left_.assign((*result)->begin(), (*result)->end());
  return StartNext();
}

absl::Status Dialler::StartNext() {
  while (!left_.empty()) {
    const HostPort next{std::move(left_.front()), address_.port};
    left_.pop_front();
    absl::StatusOr<UniqueFd> fd = StartConnect(next);
    if (!fd.ok()) {
      failure_ = fd.status();
      if (IsOwnShortage(failure_)) return failure_;  // the next one needs it as well
      continue;
    }
    if (epoll_.valid()) {
      epoll_event on_socket{.events = EPOLLOUT, .data = {}};
      if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd->get(), &on_socket) != 0) {
        return ErrnoStatus(errno, "connect to " + FormatHostPort(next));
      }
    }
    connecting_.push_back(*std::move(fd));
    failure_ = absl::OkStatus();
    return epoll_.valid() ? SetTimer(left_.empty() ? Duration(0) : kTurn) : absl::OkStatus();
  }
  return connecting_.empty() ? failure_ : absl::OkStatus();
}

absl::Status Dialler::SetTimer(Duration from_now) {
  const auto nanos = std::chrono::duration_cast<std::chrono::nanoseconds>(from_now).count();
  constexpr int64_t kSecond = 1'000'000'000;
  const itimerspec at{.it_interval = {}, .it_value = {nanos / kSecond, nanos % kSecond}};
  if (::timerfd_settime(timer_.get(), 0, &at, nullptr) == 0) return absl::OkStatus();
  return ErrnoStatus(errno, "set a timer");
}

absl::StatusOr<UniqueFd> Dialler::Step() {
  if (lookup_ != nullptr) ECPIPE_RETURN_IF_ERROR(TakeLookup());
  if (lookup_ != nullptr) return UniqueFd();
  bool next = false;
  for (auto fd = connecting_.begin(); fd != connecting_.end();) {
    pollfd polled{fd->get(), POLLOUT, 0};
    if (::poll(&polled, 1, 0) == 0) {
      ++fd;
      continue;
    }
    absl::Status connected = ConnectResult(fd->get(), FormatHostPort(address_));
    if (connected.ok()) {
      UniqueFd chosen = std::move(*fd);
      connecting_.clear();
      return chosen;
    }
    failure_ = std::move(connected);
    fd = connecting_.erase(fd);
    next = true;
  }
  uint64_t expired = 0;
  if (timer_.valid() && ::read(timer_.get(), &expired, sizeof expired) > 0) next = true;
  if (next) ECPIPE_RETURN_IF_ERROR(StartNext());
  return UniqueFd();
}

absl::StatusOr<UniqueFd> Dialler::Connect(const HostPort& address, TimePoint deadline,
                                          HostLookups* lookups) {
  ECPIPE_ASSIGN_OR_RETURN(Dialler dialler, Begin(address, lookups));
  while (true) {
    ECPIPE_ASSIGN_OR_RETURN(UniqueFd fd, dialler.Step());
    if (fd.valid()) return fd;
    const Duration left = deadline - Clock::System().Now();
    if (left <= Duration(0)) return dialler.NoAnswer();
    pollfd polled = dialler.poll_fd();
    Poll({&polled, 1}, std::min<Duration>(left, kLookupPatience));
  }
}

absl::Status Dialler::NoAnswer() const {
  if (lookup_ != nullptr) return HostLookups::NoAnswer(address_.host);
  return absl::DeadlineExceededError("no answer from " + FormatHostPort(address_));
}

pollfd Dialler::poll_fd() const {
  if (epoll_.valid()) return {epoll_.get(), POLLIN, 0};
  return {connecting_.empty() ? -1 : connecting_.front().get(), POLLOUT, 0};
}

}  // namespace ecpipe
