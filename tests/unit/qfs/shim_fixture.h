// SPDX-License-Identifier: Apache-2.0
// libecpipe_qfs.so as a chunkserver has it: loaded at run time, known by its C interface only.
#pragma once

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shim/ecpipe_qfs.h"
#include "unit/qfs/fake_endpoint.h"

namespace ecpipe_qfs {

// A generous bound for what must be prompt, on a busy machine under a sanitizer.
inline constexpr std::chrono::seconds kPrompt{20};

#define ECPIPE_QFS_FUNCTION(name) \
  decltype(&::ecpipe_qfs_##name) name = Find<decltype(&::ecpipe_qfs_##name)>("ecpipe_qfs_" #name)

struct ShimLibrary {
  static const ShimLibrary& Get() {
    static const ShimLibrary library;
    return library;
  }
  template <typename Function>
  Function Find(const char* symbol) {
    static void* const handle = dlopen(ECPIPE_QFS_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    void* found = handle == nullptr ? nullptr : dlsym(handle, symbol);
    if (found == nullptr) std::abort();
    return reinterpret_cast<Function>(found);
  }

  ECPIPE_QFS_FUNCTION(abi_version);
  ECPIPE_QFS_FUNCTION(version);
  ECPIPE_QFS_FUNCTION(config_load);
  ECPIPE_QFS_FUNCTION(config_free);
  ECPIPE_QFS_FUNCTION(range_bytes);
  ECPIPE_QFS_FUNCTION(open);
  ECPIPE_QFS_FUNCTION(submit);
  ECPIPE_QFS_FUNCTION(poll);
  ECPIPE_QFS_FUNCTION(cancel);
  ECPIPE_QFS_FUNCTION(close);
};

#undef ECPIPE_QFS_FUNCTION

// The sum of a chunk's size and place says which byte is where.
inline std::string Content(int64_t bytes, int seed = 1) {
  std::string content(static_cast<size_t>(bytes), '\0');
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u;
  for (char& c : content) {
    state = state * 1664525u + 1013904223u;
    c = static_cast<char>(state >> 24);
  }
  return content;
}

// The first chunk of a file that has nothing else in it: as long as the file, up to a cell.
inline ecpipe_qfs_chunk ChunkOfBytes(int64_t bytes) {
  return {sizeof(ecpipe_qfs_chunk), 5, 65541, 1, 0, bytes, int64_t{64} << 20, 2, 6, 3, 0, 0, 0};
}

// A configuration file with these lines, for as long as the object lives.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) {
    const int fd = ::mkstemp(path_);
    if (fd < 0) std::abort();
    ::close(fd);
    std::ofstream(path_) << text;
  }
  ~ConfigFile() { ::unlink(path_); }
  ConfigFile(const ConfigFile&) = delete;
  ConfigFile& operator=(const ConfigFile&) = delete;
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/ecpipe-qfs-conf-XXXXXX";
};

class Config {
 public:
  explicit Config(const std::string& endpoint, const std::string& more = "") {
    const ConfigFile file("endpoint " + endpoint + "\n" + more);
    ecpipe_qfs_error error{sizeof error, 0, ""};
    const int code = ShimLibrary::Get().config_load(file.path(), &config_, &error);
    EXPECT_EQ(code, ECPIPE_QFS_OK) << error.message;
  }
  ~Config() { Free(); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;
  void Free() {
    ShimLibrary::Get().config_free(config_);
    config_ = nullptr;
  }
  const ecpipe_qfs_config* get() const { return config_; }

 private:
  ecpipe_qfs_config* config_ = nullptr;
};

// A recovery as a chunkserver runs it.
class Recovery {
 public:
  struct Outcome {
    int code = ECPIPE_QFS_PENDING;
    std::string bytes;  // of this read
    bool at_end = false;
    std::string message;
  };

  Recovery(const Config& config, const ecpipe_qfs_chunk& chunk) {
    ecpipe_qfs_error error{sizeof error, 0, ""};
    const int code = lib_.open(config.get(), &chunk, &Recovery::Wake, this, &read_, &error);
    EXPECT_EQ(code, ECPIPE_QFS_OK) << error.message;
  }
  ~Recovery() { Close(); }
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  int Submit(size_t bytes, std::optional<int64_t> position = std::nullopt) {
    // Of its own each time, so that a sanitizer sees who writes to one that was given back.
    if (bytes != 0) buffer_.assign(bytes, '\0');
    ecpipe_qfs_error error{sizeof error, 0, ""};
    return lib_.submit(read_, position.value_or(position_), buffer_.data(), bytes, &error);
  }
  Outcome Poll() {
    Outcome outcome;
    size_t got = 0;
    int at_end = 0;
    ecpipe_qfs_error error{sizeof error, 0, ""};
    outcome.code = lib_.poll(read_, &got, &at_end, &error);
    outcome.bytes.assign(buffer_.data(), got);
    outcome.at_end = at_end != 0;
    outcome.message = error.message;
    return outcome;
  }
  // Waits for the callback.
  bool AwaitWake() {
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_for(lock, kPrompt, [this] { return wakes_ > 0; });
    if (woken) --wakes_;
    return woken;
  }
  Outcome Read(size_t bytes) {
    EXPECT_EQ(Submit(bytes), ECPIPE_QFS_OK);
    EXPECT_TRUE(AwaitWake());
    const Outcome outcome = Poll();
    EXPECT_NE(outcome.code, ECPIPE_QFS_PENDING);
    if (outcome.code == ECPIPE_QFS_OK) position_ += static_cast<int64_t>(outcome.bytes.size());
    return outcome;
  }
  // All reads until the end or the first failure; `bytes` has what came.
  Outcome ReadAll(size_t read_bytes = 1 << 20) {
    Outcome all;
    while (true) {
      const Outcome one = Read(read_bytes);
      all.bytes += one.bytes;
      all.code = one.code;
      all.at_end = one.at_end;
      all.message = one.message;
      if (one.code != ECPIPE_QFS_OK || one.at_end) return all;
    }
  }
  void Cancel() { lib_.cancel(read_); }
  // How long it took.
  std::chrono::steady_clock::duration Close() {
    const auto begun = std::chrono::steady_clock::now();
    lib_.close(read_);
    read_ = nullptr;
    return std::chrono::steady_clock::now() - begun;
  }
  int64_t position() const { return position_; }
  int wakes() {
    const std::lock_guard lock(mutex_);
    return wakes_;
  }

 private:
  static void Wake(void* context) {
    auto* self = static_cast<Recovery*>(context);
    const std::lock_guard lock(self->mutex_);
    ++self->wakes_;
    self->changed_.notify_all();
  }

  const ShimLibrary& lib_ = ShimLibrary::Get();
  ecpipe_qfs_read* read_ = nullptr;
  std::vector<char> buffer_;
  int64_t position_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int wakes_ = 0;
};

// An endpoint that repairs every chunk to `content`.
inline FakeEndpoint::Script Serves(const std::string& content, size_t frame_bytes = 32 << 10) {
  return [content, frame_bytes](FakeConnection& connection) {
    if (connection.ReadRequest().empty()) return;
    const auto bytes = static_cast<int64_t>(content.size());
    if (connection.SendHeader(bytes) && connection.SendData(content, frame_bytes)) {
      connection.SendEnd(bytes);
    }
  };
}

}  // namespace ecpipe_qfs
