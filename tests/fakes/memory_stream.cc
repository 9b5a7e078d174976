// SPDX-License-Identifier: Apache-2.0
#include "fakes/memory_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace ecpipe {

MemoryStream::MemoryStream(size_t capacity) : capacity_(capacity), buffer_(capacity) {
  ECPIPE_CHECK(capacity > 0);
  int pair[2];
  ECPIPE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
  MutexLock lock(&mutex_);
  for (const End end : {kSender, kReceiver}) ends_[end].fd = UniqueFd(pair[end]);
}

bool MemoryStream::Attach(End end, std::shared_ptr<Wakeup> wakeup) {
  MutexLock lock(&mutex_);
  if (ends_[end].attached) return false;
  ends_[end].attached = true;
  ends_[end].wakeup = std::move(wakeup);
  const auto& other = ends_[OtherEnd(end)].wakeup;
  if (other != nullptr) other->Signal();
  return true;
}

void MemoryStream::Close(End end) {
  MutexLock lock(&mutex_);
  ends_[end].closed = true;
  ends_[end].wakeup.reset();
  ends_[end].fd = UniqueFd();
}

absl::StatusOr<size_t> MemoryStream::Put(std::span<const uint8_t> bytes) {
  uint64_t begin = 0;
  size_t count = 0;
  {
    MutexLock lock(&mutex_);
    Silence(kSender);
    if (ends_[kReceiver].closed) return absl::UnavailableError("the receiver closed the stream");
    begin = put_;
    count = std::min(bytes.size(), capacity_ - Used());
    if (count == 0) ends_[kSender].wanted = std::min(bytes.size(), capacity_);
  }
  const size_t at = begin % capacity_;
  const size_t to_the_end = std::min(count, capacity_ - at);
  std::memcpy(buffer_.data() + at, bytes.data(), to_the_end);
  std::memcpy(buffer_.data(), bytes.data() + to_the_end, count - to_the_end);
  if (count > 0) {
    MutexLock lock(&mutex_);
    put_ += count;
    RingIfEnough(kReceiver, Used());
  }
  return count;
}

absl::StatusOr<size_t> MemoryStream::Take(std::span<uint8_t> out) {
  uint64_t begin = 0;
  size_t count = 0;
  {
    MutexLock lock(&mutex_);
    Silence(kReceiver);
    begin = taken_;
    count = std::min(out.size(), Used());
    if (count == 0 && ends_[kSender].closed) {
      return absl::UnavailableError("the sender closed the stream");
    }
    if (count == 0) ends_[kReceiver].wanted = std::min(out.size(), capacity_);
  }
  const size_t at = begin % capacity_;
  const size_t to_the_end = std::min(count, capacity_ - at);
  std::memcpy(out.data(), buffer_.data() + at, to_the_end);
  std::memcpy(out.data() + to_the_end, buffer_.data(), count - to_the_end);
  if (count > 0) {
    MutexLock lock(&mutex_);
    taken_ += count;
    RingIfEnough(kSender, capacity_ - Used());
  }
  return count;
}

bool MemoryStream::Attached(End end) {
  MutexLock lock(&mutex_);
  return ends_[end].attached;
}

bool MemoryStream::Closed(End end) {
  MutexLock lock(&mutex_);
  return ends_[end].closed;
}

bool MemoryStream::Empty() {
  MutexLock lock(&mutex_);
  return Used() == 0;
}

int MemoryStream::fd(End end) {
  MutexLock lock(&mutex_);
  return ends_[end].fd.get();
}

size_t MemoryStream::Used() const { return static_cast<size_t>(put_ - taken_); }

void MemoryStream::Silence(End end) {
  ends_[end].wanted = 0;
  if (!ends_[end].rung) return;
  uint8_t byte = 0;
  ECPIPE_CHECK(::recv(ends_[end].fd.get(), &byte, 1, 0) == 1);
  ends_[end].rung = false;
}

void MemoryStream::RingIfEnough(End end, size_t amount) {
  if (ends_[end].wanted == 0 || amount < ends_[end].wanted || ends_[end].closed) return;
  const uint8_t byte = 1;
  ECPIPE_CHECK(::send(ends_[OtherEnd(end)].fd.get(), &byte, 1, MSG_NOSIGNAL) == 1);
  ends_[end].wanted = 0;
  ends_[end].rung = true;
}

}  // namespace ecpipe
