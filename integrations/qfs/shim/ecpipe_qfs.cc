// SPDX-License-Identifier: Apache-2.0
// The C interface. Everything that is thrown ends here.
#include "shim/ecpipe_qfs.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "shim/chunk_read.h"
#include "shim/chunk_size.h"
#include "shim/settings.h"

using ecpipe_qfs::ChunkRead;
using ecpipe_qfs::Failure;
using ecpipe_qfs::SharedConfig;

struct ecpipe_qfs_config {
  std::shared_ptr<SharedConfig> shared = std::make_shared<SharedConfig>();
};

struct ecpipe_qfs_read {
  ChunkRead read;
};

namespace {

constexpr size_t kMaxReadBytes = 64u << 20;

int Tell(const Failure& failure, ecpipe_qfs_error* error) {
  // A caller that was compiled with a shorter struct has no room for more.
  if (error == nullptr || error->struct_bytes < sizeof *error) return failure.code;
  error->code = failure.code;
  const size_t count = std::min(failure.message.size(), sizeof error->message - 1);
  for (size_t i = 0; i < count; ++i) {
    const char c = failure.message[i];
    error->message[i] = c >= ' ' && c <= '~' ? c : '?';
  }
  error->message[count] = '\0';
  return failure.code;
}

Failure Misused(const char* what) { return {ECPIPE_QFS_INVALID_ARGUMENT, what}; }

// The chunk as this library knows it: a caller that was compiled with a longer struct may not set
// what the library does not know.
Failure Known(const ecpipe_qfs_chunk* chunk, ecpipe_qfs_chunk* known) {
  if (chunk == nullptr || chunk->struct_bytes < sizeof *chunk) {
    return Misused("struct_bytes of the chunk is too small. Set it to sizeof");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(chunk);
  for (size_t i = sizeof *chunk; i < chunk->struct_bytes; ++i) {
    if (bytes[i] != 0) return Misused("the chunk has a member that this library does not know");
  }
  if (chunk->reserved != 0) return Misused("a reserved member of the chunk is not 0");
  std::memcpy(known, chunk, sizeof *known);
  return {};
}

// As Tell(), without memory for it.
int TellShortly(int code, const char* message, ecpipe_qfs_error* error) noexcept {
  if (error != nullptr && error->struct_bytes >= sizeof *error) {
    error->code = code;
    std::strncpy(error->message, message, sizeof error->message - 1);
  }
  return code;
}

// What `call` returns, which is a Failure, or what it throws as one.
template <typename Call>
int Guarded(ecpipe_qfs_error* error, const Call& call) noexcept {
  try {
    const Failure failure = call();
    return failure.ok() || failure.code == ECPIPE_QFS_PENDING ? failure.code : Tell(failure, error);
  } catch (const std::bad_alloc&) {
    return TellShortly(ECPIPE_QFS_RESOURCE_EXHAUSTED, "no memory is left", error);
  } catch (...) {
    return TellShortly(ECPIPE_QFS_INTERNAL, "an exception in the library", error);
  }
}

}  // namespace

extern "C" {

int ecpipe_qfs_abi_version(void) { return ECPIPE_QFS_ABI_VERSION; }

const char* ecpipe_qfs_version(void) { return ECPIPE_QFS_PROJECT_VERSION; }

int ecpipe_qfs_config_load(const char* path, ecpipe_qfs_config** config, ecpipe_qfs_error* error) {
  return Guarded(error, [&]() -> Failure {
    if (path == nullptr || config == nullptr) return Misused("no path, or nowhere to put it");
    *config = nullptr;
    auto loaded = std::make_unique<ecpipe_qfs_config>();
    Failure failure = ecpipe_qfs::LoadSettings(path, &loaded->shared->settings);
    if (failure.ok()) *config = loaded.release();
    return failure;
  });
}

void ecpipe_qfs_config_free(ecpipe_qfs_config* config) { delete config; }

int64_t ecpipe_qfs_range_bytes(const ecpipe_qfs_chunk* chunk, ecpipe_qfs_error* error) {
  int64_t bytes = -1;
  const int code = Guarded(error, [&]() -> Failure {
    ecpipe_qfs_chunk known;
    Failure failure = Known(chunk, &known);
    return failure.ok() ? ecpipe_qfs::RangeBytes(known, &bytes) : failure;
  });
  return code == ECPIPE_QFS_OK ? bytes : -1;
}

int ecpipe_qfs_open(const ecpipe_qfs_config* config, const ecpipe_qfs_chunk* chunk,
                    void (*wake)(void* context), void* context, ecpipe_qfs_read** read,
                    ecpipe_qfs_error* error) {
  return Guarded(error, [&]() -> Failure {
    if (config == nullptr || read == nullptr) return Misused("no configuration, or no read");
    *read = nullptr;
    ecpipe_qfs_chunk known;
    int64_t bytes = 0;
    Failure failure = Known(chunk, &known);
    if (failure.ok()) failure = ecpipe_qfs::RangeBytes(known, &bytes);
    if (!failure.ok()) return failure;
    std::unique_ptr<ecpipe_qfs_read> opened(
        new ecpipe_qfs_read{{config->shared, known, bytes, wake, context}});
    failure = opened->read.Start();
    if (failure.ok()) *read = opened.release();
    return failure;
  });
}

int ecpipe_qfs_submit(ecpipe_qfs_read* read, int64_t position, void* buffer, size_t bytes,
                      ecpipe_qfs_error* error) {
  return Guarded(error, [&]() -> Failure {
    if (read == nullptr || bytes > kMaxReadBytes) return Misused("no read, or one over 64 MiB");
    return read->read.Submit(position, static_cast<uint8_t*>(buffer), bytes);
  });
}

int ecpipe_qfs_poll(ecpipe_qfs_read* read, size_t* got, int* at_end, ecpipe_qfs_error* error) {
  return Guarded(error, [&]() -> Failure {
    if (read == nullptr || got == nullptr || at_end == nullptr) {
      return Misused("no read, or nowhere to put its outcome");
    }
    bool end = false;
    Failure failure = read->read.Poll(got, &end);
    *at_end = end ? 1 : 0;
    return failure;
  });
}

void ecpipe_qfs_cancel(ecpipe_qfs_read* read) {
  Guarded(nullptr, [&]() -> Failure {
    if (read != nullptr) read->read.Cancel();
    return {};
  });
}

void ecpipe_qfs_close(ecpipe_qfs_read* read) { delete read; }

}  // extern "C"
