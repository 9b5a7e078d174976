// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace ecpipe {

// A FIFO, and a thread that reads it. It waits for nobody who writes.
class FifoReader {
 public:
  explicit FifoReader(const std::string& path) {
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    fd_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(fd_.valid());
    thread_ = std::thread([this] { Run(); });
  }
  ~FifoReader() {
    if (thread_.joinable()) Finish();
  }

  // What was written until now.
  std::string Finish() {
    written_ = true;
    thread_.join();
    return text_;
  }

 private:
  void Run() {
    char piece[4096];
    while (true) {
      const bool last = written_;
      const ssize_t got = ::read(fd_.get(), piece, sizeof piece);
      if (got > 0) {
        text_.append(piece, static_cast<size_t>(got));
      } else if (last) {
        return;
      } else {
        pollfd polled{fd_.get(), POLLIN, 0};
        ::poll(&polled, 1, 10);
      }
    }
  }

  UniqueFd fd_;
  std::string text_;
  std::atomic<bool> written_{false};
  std::thread thread_;
};

}  // namespace ecpipe
