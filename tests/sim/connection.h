// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/wakeup.h"
#include "fakes/byte_stream.h"
#include "sim/network.h"

namespace ecpipe::sim {

// One data connection, as its sender sees it from the moment that it offers the edge. Bytes arrive
// in order; a broken connection loses what is under way, and each end learns of it in its own time.
class Connection : public ByteStream,
                   public Pollable,
                   public std::enable_shared_from_this<Connection> {
 public:
  Connection(Network* network, std::string sender_node, std::shared_ptr<Wakeup> wakeup);
  ~Connection() override;

  // A receiver has come; `receiver_fd` is its descriptor.
  void Attach(const std::string& receiver_node, int receiver_fd);
  // This end has died. The other one learns of it when the wire lets it.
  void Break(End end);

  void Close(End end) override;
  absl::StatusOr<size_t> Put(std::span<const uint8_t> bytes) override;
  absl::StatusOr<size_t> Take(std::span<uint8_t> out) override;
  bool Attached(End end) override { return end == kSender || attached_; }
  bool Closed(End end) override {
    return end == kReceiver ? receiver_gone_ || reset_[kSender] : ended_;
  }
  bool Empty() override { return taken_all_; }
  int fd(End end) override { return end == kSender ? fd_ : receiver_fd_; }
  short Revents(int fd, short events) override;

  // Whether the receiver's end can go on: there are bytes, or there will be none.
  bool Readable() const { return !arrived_.empty() || ended_ || reset_[kReceiver]; }
  bool sender_closed() const { return sender_closed_; }
  TimePoint closed_at() const { return closed_at_; }

  // Connections that exist.
  static int count() { return count_; }

 private:
  void Send(std::vector<uint8_t> piece);
  void Arrive(const std::vector<uint8_t>& piece);
  // Runs `action` at the receiver, behind all that is under way.
  void AtReceiver(size_t bytes, std::function<void()> action);
  void AtSender(std::function<void()> action);
  void Reset(End end);
  const std::string& NodeOf(End end) const {
    return end == kSender ? sender_node_ : receiver_node_;
  }
  void TryArrive(std::function<void()> action);
  size_t Used() const { return under_way_ + arrived_.size(); }

  static inline int count_ = 0;

  Network* const network_;
  const std::string sender_node_;
  std::string receiver_node_;
  std::shared_ptr<Wakeup> wakeup_;  // shared with the sender's part, which may end first
  int fd_ = -1;
  int receiver_fd_ = -1;
  bool attached_ = false;
  std::array<bool, 2> reset_{};  // by end: whether it knows that the connection is broken
  bool sender_waits_ = false;    // for space
  bool sender_closed_ = false;
  TimePoint closed_at_{};  // by the sender
  bool receiver_closed_ = false;
  bool receiver_gone_ = false;  // the sender knows that the receiver has closed
  bool taken_all_ = false;      // and whether it had taken everything
  bool ended_ = false;          // the receiver knows that the sender has closed
  TimePoint last_arrival_{};
  size_t under_way_ = 0;
  std::vector<uint8_t> early_;  // put before a receiver came
  std::deque<uint8_t> arrived_;
  uint64_t put_ = 0;
  uint64_t taken_ = 0;
};

// The receiver's end, from the moment that it dials.
class Dial : public ByteStream, public Pollable {
 public:
  Dial(Network* network, std::string node);
  ~Dial() override;

  void Match(std::shared_ptr<Connection> connection) { connection_ = std::move(connection); }
  void Refuse(const std::string& why);
  void Break();
  bool closed() const { return closed_; }
  const std::string& node() const { return node_; }

  void Close(End end) override;
  absl::StatusOr<size_t> Put(std::span<const uint8_t> bytes) override;
  absl::StatusOr<size_t> Take(std::span<uint8_t> out) override;
  bool Attached(End) override { return true; }
  bool Closed(End) override { return closed_; }
  bool Empty() override { return false; }
  int fd(End) override { return fd_; }
  short Revents(int fd, short events) override;

 private:
  Network* const network_;
  const std::string node_;
  int fd_ = -1;
  bool closed_ = false;
  std::string refused_;
  std::shared_ptr<Connection> connection_;  // once it is matched; shared with the sender
};

}  // namespace ecpipe::sim
