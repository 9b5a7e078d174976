// SPDX-License-Identifier: Apache-2.0
// Reads a lost chunk through libecpipe_qfs.so, as a chunkserver does, and writes it to a file or to
// standard output: to see that an installation works, and for tests.
#include <dlfcn.h>
#include <getopt.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "shim/ecpipe_qfs.h"

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitCancelled = 3;

constexpr const char* kHelp =
    R"(qfs_chunk_reader --config FILE --chunk F.C.V --chunk-offset BYTES --file-size BYTES [options]

Reads a lost chunk of QFS through ECPipe, as a chunkserver does.

  --config FILE          configuration of libecpipe_qfs.so, as deploy/qfs-shim.conf
  --chunk F.C.V          file id, chunk id and version of the lost chunk, as its file is called
  --chunk-offset BYTES   its place in the file's chunk address space, a multiple of 64 MiB
  --file-size BYTES      of the file
  --library FILE         default: libecpipe_qfs.so, where the loader finds it
  --striper N            2 (Reed-Solomon of QFS) or 3 (Jerasure); default 2
  --data K --parity M    stripes; default 6 and 3
  --cell BYTES           stripe size; default 65536
  --offset BYTES         where in the chunk to begin; default 0
  --bytes BYTES          how much; default 0, all
  --read-bytes BYTES     of each read; default 1048576
  --cancel-after BYTES   cancels when at least so many have come, with another read under way
  --deadline-s SECONDS   gives up; default 600
  --output FILE          default: -, standard output

Exit code: 0 the range is complete; 1 it is not; 2 usage; 3 cancelled, as wished.
)";

struct Options {
  std::string library = "libecpipe_qfs.so";
  std::string config;
  std::string output = "-";
  ecpipe_qfs_chunk chunk{sizeof(ecpipe_qfs_chunk), 0, 0, 0, 0, 0, 65536, 2, 6, 3, 0, 0, 0};
  int64_t read_bytes = 1 << 20;
  int64_t cancel_after = -1;
  int64_t deadline_s = 600;
};

[[noreturn]] void Usage(const std::string& what) {
  std::fprintf(stderr, "qfs_chunk_reader: %s; --help says more\n", what.c_str());
  std::exit(kExitUsage);
}

int64_t Number(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) Usage(name + " wants a number");
  return value;
}

int32_t SmallNumber(const std::string& name, const std::string& text) {
  const int64_t value = Number(name, text);
  if (value > INT32_MAX) Usage(name + " is too large");
  return static_cast<int32_t>(value);
}

void SetChunk(const std::string& text, ecpipe_qfs_chunk* chunk) {
  const size_t first = text.find('.');
  const size_t second = text.find('.', first == std::string::npos ? first : first + 1);
  if (second == std::string::npos) Usage("--chunk wants FILE.CHUNK.VERSION");
  chunk->file_id = Number("--chunk", text.substr(0, first));
  chunk->chunk_id = Number("--chunk", text.substr(first + 1, second - first - 1));
  chunk->chunk_version = Number("--chunk", text.substr(second + 1));
}

void Set(const std::string& name, const std::string& value, Options* options) {
  ecpipe_qfs_chunk& chunk = options->chunk;
  if (name == "library") options->library = value;
  if (name == "config") options->config = value;
  if (name == "output") options->output = value;
  if (name == "chunk") SetChunk(value, &chunk);
  if (name == "chunk-offset") chunk.chunk_offset = Number(name, value);
  if (name == "file-size") chunk.file_size = Number(name, value);
  if (name == "striper") chunk.striper_type = SmallNumber(name, value);
  if (name == "data") chunk.data_stripes = SmallNumber(name, value);
  if (name == "parity") chunk.recovery_stripes = SmallNumber(name, value);
  if (name == "cell") chunk.stripe_size = Number(name, value);
  if (name == "offset") chunk.offset = Number(name, value);
  if (name == "bytes") chunk.bytes = Number(name, value);
  if (name == "read-bytes") options->read_bytes = Number(name, value);
  if (name == "cancel-after") options->cancel_after = Number(name, value);
  if (name == "deadline-s") options->deadline_s = Number(name, value);
}

Options Parse(int argc, char** argv) {
  static const char* const names[] = {
      "library", "config", "output", "chunk",      "chunk-offset", "file-size",  "striper", "data",
      "parity",  "cell",   "offset", "read-bytes", "cancel-after", "deadline-s", "bytes"};
  std::vector<option> known{{"help", no_argument, nullptr, 'h'}};
  for (const char* name : names) known.push_back({name, required_argument, nullptr, 'v'});
  known.push_back({});
  Options options;
  int index = 0;
  for (int c = 0; (c = getopt_long(argc, argv, "h", known.data(), &index)) != -1;) {
    if (c == 'h') {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (c != 'v') std::exit(kExitUsage);
    Set(known[static_cast<size_t>(index)].name, optarg, &options);
  }
  if (optind != argc) Usage(std::string("'") + argv[optind] + "' is not an option");
  if (options.config.empty()) Usage("--config is missing");
  if (options.read_bytes < 1 || options.read_bytes > (64 << 20)) Usage("--read-bytes: 1 to 64 MiB");
  return options;
}

// The functions of the library.
struct Library {
  decltype(&ecpipe_qfs_abi_version) abi_version = nullptr;
  decltype(&ecpipe_qfs_config_load) config_load = nullptr;
  decltype(&ecpipe_qfs_config_free) config_free = nullptr;
  decltype(&ecpipe_qfs_open) open = nullptr;
  decltype(&ecpipe_qfs_submit) submit = nullptr;
  decltype(&ecpipe_qfs_poll) poll = nullptr;
  decltype(&ecpipe_qfs_cancel) cancel = nullptr;
  decltype(&ecpipe_qfs_close) close = nullptr;

  template <typename Function>
  static bool Find(void* handle, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
  }
  bool Load(const std::string& path) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return handle != nullptr && Find(handle, "ecpipe_qfs_abi_version", &abi_version) &&
           abi_version() == ECPIPE_QFS_ABI_VERSION &&
           Find(handle, "ecpipe_qfs_config_load", &config_load) &&
           Find(handle, "ecpipe_qfs_config_free", &config_free) &&
           Find(handle, "ecpipe_qfs_open", &open) && Find(handle, "ecpipe_qfs_submit", &submit) &&
           Find(handle, "ecpipe_qfs_poll", &poll) && Find(handle, "ecpipe_qfs_cancel", &cancel) &&
           Find(handle, "ecpipe_qfs_close", &close);
  }
};

class Signal {
 public:
  static void Wake(void* context) {
    auto* signal = static_cast<Signal*>(context);
    const std::lock_guard lock(signal->mutex_);
    signal->woken_ = true;
    signal->changed_.notify_one();
  }
  bool Await(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    const bool woken = changed_.wait_until(lock, deadline, [this] { return woken_; });
    woken_ = false;
    return woken;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

int Fail(const char* what, const ecpipe_qfs_error& error, int64_t position) {
  std::fprintf(stderr, "qfs_chunk_reader: %s, after %lld bytes: code %d: %s\n", what,
               static_cast<long long>(position), error.code, error.message);
  return kExitFailed;
}

int ReadAll(const Options& options, const Library& library, ecpipe_qfs_read* read, Signal* signal,
            std::FILE* output) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.deadline_s);
  std::vector<char> buffer(static_cast<size_t>(options.read_bytes));
  ecpipe_qfs_error error{sizeof error, 0, ""};
  int at_end = 0;
  for (int64_t position = 0; at_end == 0;) {
    if (library.submit(read, position, buffer.data(), buffer.size(), &error) != ECPIPE_QFS_OK) {
      return Fail("submit", error, position);
    }
    if (options.cancel_after >= 0 && position >= options.cancel_after) {
      library.cancel(read);
      std::fprintf(stderr, "qfs_chunk_reader: cancelled after %lld bytes\n",
                   static_cast<long long>(position));
      return kExitCancelled;
    }
    if (!signal->Await(deadline)) {
      error = {sizeof error, ECPIPE_QFS_DEADLINE_EXCEEDED, "--deadline-s is over"};
      return Fail("read", error, position);
    }
    size_t got = 0;
    if (library.poll(read, &got, &at_end, &error) != ECPIPE_QFS_OK) {
      return Fail("read", error, position);
    }
    if (std::fwrite(buffer.data(), 1, got, output) != got) {
      std::fprintf(stderr, "qfs_chunk_reader: write: %s\n", std::strerror(errno));
      return kExitFailed;
    }
    position += static_cast<int64_t>(got);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  Library library;
  if (!library.Load(options.library)) {
    const char* why = dlerror();
    std::fprintf(stderr, "qfs_chunk_reader: %s: %s\n", options.library.c_str(),
                 why != nullptr ? why : "another version than this program's");
    return kExitFailed;
  }
  ecpipe_qfs_error error{sizeof error, 0, ""};
  ecpipe_qfs_config* config = nullptr;
  if (library.config_load(options.config.c_str(), &config, &error) != ECPIPE_QFS_OK) {
    return Fail("configuration", error, 0);
  }
  Signal signal;
  ecpipe_qfs_read* read = nullptr;
  const int opened = library.open(config, &options.chunk, &Signal::Wake, &signal, &read, &error);
  library.config_free(config);
  if (opened != ECPIPE_QFS_OK) return Fail("open", error, 0);
  std::FILE* output = options.output == "-" ? stdout : std::fopen(options.output.c_str(), "wbe");
  int code = kExitFailed;
  if (output == nullptr) {
    std::fprintf(stderr, "qfs_chunk_reader: %s: %s\n", options.output.c_str(),
                 std::strerror(errno));
  } else {
    code = ReadAll(options, library, read, &signal, output);
  }
  library.close(read);
  if (output != nullptr && std::fclose(output) != 0) {
    std::fprintf(stderr, "qfs_chunk_reader: write: %s\n", std::strerror(errno));
    code = kExitFailed;
  }
  return code;
}
