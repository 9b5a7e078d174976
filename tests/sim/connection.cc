// SPDX-License-Identifier: Apache-2.0
#include "sim/connection.h"

#include <poll.h>

#include <algorithm>

#include "base/check.h"

namespace ecpipe::sim {
namespace {

// TCP sends again until the wire is back; how often it tries is of no importance here.
constexpr Duration kSendAgain = std::chrono::milliseconds(50);

}  // namespace

Connection::Connection(Network* network, std::string sender_node, std::shared_ptr<Wakeup> wakeup)
    : network_(network), sender_node_(std::move(sender_node)), wakeup_(std::move(wakeup)) {
  fd_ = network_->scheduler()->Watch(this);
  ++count_;
}

Connection::~Connection() {
  if (fd_ >= 0) network_->scheduler()->Unwatch(fd_);
  --count_;
}

void Connection::Attach(const std::string& receiver_node, int receiver_fd) {
  ECPIPE_CHECK(!attached_);
  receiver_node_ = receiver_node;
  receiver_fd_ = receiver_fd;
  attached_ = true;
  if (wakeup_ != nullptr) wakeup_->Signal();
  if (!early_.empty()) Send(std::move(early_));
  if (sender_closed_) AtReceiver(0, [this] { ended_ = true; });
}

void Connection::Break(End end) {
  if (reset_[end]) return;
  Reset(end);
  const End other = end == kSender ? kReceiver : kSender;
  network_->scheduler()->After(network_->Delay(),
                               [self = shared_from_this(), other] { self->Reset(other); });
}

void Connection::Reset(End end) {
  const End other = end == kSender ? kReceiver : kSender;
  if (reset_[other] && attached_ && !network_->Reachable(NodeOf(other), NodeOf(end))) {
    network_->scheduler()->After(kSendAgain,
                                 [self = shared_from_this(), end] { self->Reset(end); });
    return;
  }
  reset_[end] = true;
  network_->scheduler()->Signalled(fd(end));
  if (end == kSender && wakeup_ != nullptr) wakeup_->Signal();
}

void Connection::Close(End end) {
  if (end == kSender) {
    sender_closed_ = true;
    closed_at_ = network_->scheduler()->Now();
    wakeup_.reset();
    network_->scheduler()->Unwatch(fd_);
    fd_ = -1;
    if (attached_) AtReceiver(0, [this] { ended_ = true; });
    return;
  }
  receiver_closed_ = true;
  receiver_fd_ = -1;
  AtSender([this, all = taken_ == put_] {
    receiver_gone_ = true;
    taken_all_ = all;
  });
}

absl::StatusOr<size_t> Connection::Put(std::span<const uint8_t> bytes) {
  if (Closed(kReceiver)) return absl::UnavailableError("the receiver closed the stream");
  const size_t window = network_->options().window_bytes;
  const size_t used = attached_ ? Used() : early_.size();
  const size_t count = std::min(bytes.size(), window - std::min(window, used));
  sender_waits_ = count == 0;
  if (count == 0) return count;
  std::vector<uint8_t> piece(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
  put_ += count;
  if (attached_) {
    Send(std::move(piece));
  } else {
    early_.insert(early_.end(), piece.begin(), piece.end());
  }
  return count;
}

void Connection::Send(std::vector<uint8_t> piece) {
  Random& random = network_->scheduler()->random();
  if (random.Chance(network_->options().cut_stream)) return Break(kSender);
  if (random.Chance(network_->options().corrupt_piece)) {
    piece[random.Below(piece.size())] ^= static_cast<uint8_t>(1 << random.Below(8));
  }
  under_way_ += piece.size();
  const size_t bytes = piece.size();
  AtReceiver(bytes, [this, piece = std::move(piece)] { Arrive(piece); });
}

void Connection::AtReceiver(size_t bytes, std::function<void()> action) {
  Scheduler* const scheduler = network_->scheduler();
  const TimePoint arrival =
      scheduler->Now() + network_->DelayOf(sender_node_, receiver_node_, bytes);
  last_arrival_ = std::max(arrival, last_arrival_ + Duration(1));
  scheduler->After(
      last_arrival_ - scheduler->Now(),
      [self = shared_from_this(), action = std::move(action)] { self->TryArrive(action); });
}

void Connection::TryArrive(std::function<void()> action) {
  if (reset_[kReceiver] || receiver_closed_) return;
  if (!network_->Reachable(sender_node_, receiver_node_)) {
    // What is behind it waits as long and a little more.
    Scheduler* const scheduler = network_->scheduler();
    last_arrival_ = std::max(last_arrival_, scheduler->Now() + kSendAgain) + Duration(1);
    scheduler->After(kSendAgain, [self = shared_from_this(), action = std::move(action)] {
      self->TryArrive(action);
    });
    return;
  }
  action();
  network_->scheduler()->Signalled(receiver_fd_);
}

void Connection::Arrive(const std::vector<uint8_t>& piece) {
  under_way_ -= piece.size();
  arrived_.insert(arrived_.end(), piece.begin(), piece.end());
}

void Connection::AtSender(std::function<void()> action) {
  network_->scheduler()->After(network_->Delay(), [self = shared_from_this(),
                                                   action = std::move(action)] {
    if (self->sender_closed_) return;
    if (!self->network_->Reachable(self->receiver_node_, self->sender_node_)) {
      self->network_->scheduler()->After(kSendAgain, [self, action] { self->AtSender(action); });
      return;
    }
    action();
    self->network_->scheduler()->Signalled(self->fd_);
  });
}

absl::StatusOr<size_t> Connection::Take(std::span<uint8_t> out) {
  if (reset_[kReceiver]) return absl::UnavailableError("connection reset by peer");
  const size_t count = std::min(out.size(), arrived_.size());
  if (count == 0 && ended_) return absl::UnavailableError("the sender closed the stream");
  const auto end = arrived_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(arrived_.begin(), end, out.begin());
  arrived_.erase(arrived_.begin(), end);
  taken_ += count;
  if (count > 0) network_->scheduler()->Signalled(fd_);
  return count;
}

short Connection::Revents(int, short events) {
  short revents = 0;
  if (Closed(kReceiver)) revents |= POLLRDHUP | POLLIN;
  if (sender_waits_ && attached_ && Used() < network_->options().window_bytes) revents |= POLLIN;
  return static_cast<short>(revents & (events | POLLERR | POLLHUP));
}

Dial::Dial(Network* network, std::string node) : network_(network), node_(std::move(node)) {
  fd_ = network_->scheduler()->Watch(this);
}

Dial::~Dial() {
  if (fd_ >= 0) network_->scheduler()->Unwatch(fd_);
}

void Dial::Refuse(const std::string& why) {
  refused_ = why;
  network_->scheduler()->Signalled(fd_);
}

void Dial::Break() {
  if (connection_ != nullptr) return connection_->Break(kReceiver);
  Refuse("connection reset by peer");
}

void Dial::Close(End) {
  closed_ = true;
  network_->scheduler()->Unwatch(fd_);
  fd_ = -1;
  if (connection_ != nullptr) connection_->Close(kReceiver);
}

absl::StatusOr<size_t> Dial::Put(std::span<const uint8_t>) {
  return absl::InternalError("a receiver does not send");
}

absl::StatusOr<size_t> Dial::Take(std::span<uint8_t> out) {
  if (connection_ != nullptr) return connection_->Take(out);
  if (!refused_.empty()) return absl::UnavailableError(refused_);
  return 0;
}

short Dial::Revents(int, short events) {
  const bool ready = connection_ != nullptr ? connection_->Readable() : !refused_.empty();
  return static_cast<short>(ready ? events & POLLIN : 0);
}

}  // namespace ecpipe::sim
