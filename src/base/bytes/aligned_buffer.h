// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace ecpipe {

// Page-aligned heap bytes, not initialised. Page alignment serves the SIMD kernels (32 bytes) and
// keeps O_DIRECT (4096) possible. Throws std::bad_alloc like any container.
class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes) : bytes_(bytes) {
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    data_.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, rounded)));
    if (data_ == nullptr && rounded != 0) throw std::bad_alloc();
  }

  size_t size() const { return bytes_; }
  uint8_t* data() { return data_.get(); }
  std::span<uint8_t> span() { return {data_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<uint8_t, Free> data_;
  size_t bytes_ = 0;
};

}  // namespace ecpipe
