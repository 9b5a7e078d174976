// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace ecpipe {

// A range of a file that goes into several buffers, in order.
class FilePieces {
 public:
  void Add(std::span<uint8_t> piece) {
    if (!piece.empty()) pieces_[count_++] = {piece.data(), piece.size()};
  }

  // One preadv2: what is missing from `offset` on. Returns how many bytes came, -1 with errno.
  ssize_t ReadSome(int fd, uint64_t offset, int flags) {
    const ssize_t got = ::preadv2(fd, &pieces_[first_], static_cast<int>(count_ - first_),
                                  static_cast<off_t>(offset), flags);
    size_t rest = got > 0 ? static_cast<size_t>(got) : 0;
    while (rest > 0) {
      iovec& piece = pieces_[first_];
      const size_t step = std::min(rest, piece.iov_len);
      piece.iov_base = static_cast<uint8_t*>(piece.iov_base) + step;
      piece.iov_len -= step;
      rest -= step;
      if (piece.iov_len == 0) ++first_;
    }
    return got;
  }

  bool Full() const { return first_ == count_; }

 private:
  std::array<iovec, 3> pieces_{};
  size_t count_ = 0;
  size_t first_ = 0;  // that still lacks bytes
};

}  // namespace ecpipe
