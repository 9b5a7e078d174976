// SPDX-License-Identifier: Apache-2.0
// Reads at a given rate, whether earlier reads have ended or not (an open loop), through libecpipe:
//
//   read_load COORDINATOR SCHEME RATE SECONDS BYTES SEED BLOCK=FILE...
//
// RATE reads a second begin at random instants (a Poisson process), each of BYTES of a random block
// at a random place. FILE has the bytes that the block must have. A read's time runs from the
// instant when it was due, so that one that had to wait for others counts with its wait. When the
// library takes no more calls, reads wait in line; when too many wait, the load is more than the
// system bears, and no more begin. The last line is JSON. Exit code 1: wrong bytes, or no start.
#include <ecpipe.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr size_t kMostWaiting = 2000;  // a read that waits behind so many is late for sure
constexpr std::chrono::seconds kForTheLast{30};  // what has not ended by then has failed

[[noreturn]] void Fail(const std::string& reason) {
  std::fprintf(stderr, "read_load: %s\n", reason.c_str());
  std::exit(1);
}

struct Block {
  std::string id;
  const char* bytes = nullptr;
  size_t size = 0;
};

// Of "BLOCK=FILE". The file stays mapped until the end.
Block Mapped(const std::string& argument) {
  const size_t middle = argument.find('=');
  if (middle == std::string::npos) Fail(argument + ": write BLOCK=FILE");
  const std::string path = argument.substr(middle + 1);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found{};
  if (file < 0 || ::fstat(file, &found) != 0) Fail(path + ": " + std::strerror(errno));
  const auto size = static_cast<size_t>(found.st_size);
  void* bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) Fail(path + ": " + std::strerror(errno));
  ::close(file);
  return {argument.substr(0, middle), static_cast<const char*>(bytes), size};
}

struct Read {
  Clock::time_point due;
  const Block* block = nullptr;
  uint64_t offset = 0;
  size_t taken = 0;
  ecpipe_call* call = nullptr;
};

class Load {
 public:
  Load(const std::string& coordinator, std::string scheme, size_t bytes, std::vector<Block> blocks,
       unsigned seed)
      : scheme_(std::move(scheme)), bytes_(bytes), blocks_(std::move(blocks)), random_(seed) {
    ecpipe_options options = {};
    options.struct_bytes = sizeof options;
    options.coordinator = coordinator.c_str();
    options.tls_ca = std::getenv("ECPIPE_TLS_CA");
    options.tls_certificate = std::getenv("ECPIPE_TLS_CERT");
    options.tls_key = std::getenv("ECPIPE_TLS_KEY");
    ecpipe_error error = {};
    error.struct_bytes = sizeof error;
    if (ecpipe_open(&options, &client_, &error) != ECPIPE_OK) Fail(error.message);
  }

  void Run(double rate, Seconds duration) {
    // Connections are made, and the coordinator's names looked up, before anything is measured.
    Begin(Drawn(Clock::now()));
    while (!running_.empty()) Pass(Clock::now() + kForTheLast);
    if (milliseconds_.empty()) Fail("the first read failed: " + first_error_);
    milliseconds_.clear();
    attempts_ = 0;

    const Clock::time_point begin = Clock::now();
    std::exponential_distribution<double> pause(rate);
    Clock::time_point due = begin;
    while (true) {
      due += std::chrono::duration_cast<Clock::duration>(Seconds(pause(random_)));
      if (due >= begin + duration || waiting_.size() > kMostWaiting) break;
      while (Clock::now() < due) Pass(due);
      waiting_.push_back(Drawn(due));
      ++offered_;
      BeginWaiting();
    }
    const Clock::time_point end = Clock::now() + kForTheLast;
    while (!(running_.empty() && waiting_.empty()) && Clock::now() < end) {
      Pass(end);
      BeginWaiting();
    }
    unfinished_ = running_.size() + waiting_.size();
    for (const Read& read : running_) ecpipe_call_free(read.call);
    ecpipe_close(client_);
  }

  std::string Report() {
    std::sort(milliseconds_.begin(), milliseconds_.end());
    const auto percentile = [this](double share) {
      if (milliseconds_.empty()) return 0.0;
      const auto at = static_cast<size_t>(std::ceil(share * milliseconds_.size()));
      return milliseconds_[std::max<size_t>(at, 1) - 1];
    };
    return nlohmann::json{
        {"offered", offered_},       {"done", milliseconds_.size()}, {"failed", failed_},
        {"unfinished", unfinished_}, {"first_error", first_error_},  {"attempts", attempts_},
        {"p50_ms", percentile(0.5)}, {"p99_ms", percentile(0.99)},   {"longest_ms", percentile(1)}}
        .dump();
  }

 private:
  Read Drawn(Clock::time_point due) {
    const Block& block =
        blocks_[std::uniform_int_distribution<size_t>(0, blocks_.size() - 1)(random_)];
    if (block.size < bytes_) Fail(block.id + " is shorter than a read");
    return {due, &block, std::uniform_int_distribution<uint64_t>(0, block.size - bytes_)(random_)};
  }

  void BeginWaiting() {
    while (!waiting_.empty() && Begin(waiting_.front())) waiting_.pop_front();
  }

  // Whether the library has taken the read, or refused it for good.
  bool Begin(Read read) {
    const char* id = read.block->id.c_str();
    ecpipe_target target = {};
    target.struct_bytes = sizeof target;
    target.block_ids = &id;
    target.block_count = 1;
    target.offset = read.offset;
    target.bytes = bytes_;
    target.scheme = scheme_.c_str();
    ecpipe_error error = {};
    error.struct_bytes = sizeof error;
    const int code = ecpipe_submit_read(client_, &target, nullptr, &read.call, &error);
    if (code == ECPIPE_RESOURCE_EXHAUSTED) return false;
    code == ECPIPE_OK ? running_.push_back(read) : Failed(error);
    return true;
  }

  void Failed(const ecpipe_error& error) {
    if (failed_++ == 0) first_error_ = error.message;
  }

  // Waits for any read, at most until then, and takes what has come.
  void Pass(Clock::time_point until) {
    std::vector<pollfd> polled;
    for (const Read& read : running_) {
      polled.push_back({ecpipe_call_descriptor(read.call), POLLIN, 0});
    }
    const timespec wait = Left(until);
    if (::ppoll(polled.data(), polled.size(), &wait, nullptr) <= 0) return;
    size_t kept = 0;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0 && Ended(running_[i])) continue;
      running_[kept++] = running_[i];
    }
    running_.resize(kept);
  }

  static timespec Left(Clock::time_point until) {
    const auto left = std::max(until - Clock::now(), Clock::duration::zero());
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
    return {whole.count(), std::chrono::nanoseconds(left - whole).count()};
  }

  bool Ended(Read& read) {
    ecpipe_error error = {};
    error.struct_bytes = sizeof error;
    while (true) {
      char buffer[64 << 10];
      size_t taken = 0;
      const int code = ecpipe_call_take(read.call, buffer, sizeof buffer, &taken, &error);
      if (code == ECPIPE_PENDING) return false;
      if (code != ECPIPE_OK) {
        Failed(error);
        break;
      }
      if (read.taken + taken > bytes_ ||
          std::memcmp(buffer, read.block->bytes + read.offset + read.taken, taken) != 0) {
        Fail("WRONG BYTES of " + read.block->id + " at " + std::to_string(read.offset));
      }
      read.taken += taken;
      if (taken > 0) continue;
      if (read.taken != bytes_) Fail("a read of " + read.block->id + " ended too early");
      milliseconds_.push_back(Seconds(Clock::now() - read.due).count() * 1000);
      ecpipe_report report = {};
      report.struct_bytes = sizeof report;
      if (ecpipe_call_result(read.call, &report, &error) == ECPIPE_OK) attempts_ += report.attempts;
      break;
    }
    ecpipe_call_free(read.call);
    return true;
  }

  const std::string scheme_;
  const size_t bytes_;
  const std::vector<Block> blocks_;
  std::mt19937_64 random_;
  ecpipe_client* client_ = nullptr;
  std::vector<Read> running_;
  std::deque<Read> waiting_;  // due, and not begun
  std::vector<double> milliseconds_;
  uint64_t offered_ = 0;
  uint64_t failed_ = 0;
  uint64_t unfinished_ = 0;
  uint64_t attempts_ = 0;  // of those that succeeded
  std::string first_error_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 7) {
    Fail("usage: read_load COORDINATOR SCHEME RATE SECONDS BYTES SEED BLOCK=FILE...");
  }
  const double rate = std::atof(words[2].c_str());
  const double seconds = std::atof(words[3].c_str());
  const int64_t bytes = std::atoll(words[4].c_str());
  if (!(rate > 0) || !(seconds > 0) || bytes <= 0) Fail("RATE, SECONDS and BYTES must be above 0");
  std::vector<Block> blocks;
  std::transform(words.begin() + 6, words.end(), std::back_inserter(blocks), Mapped);
  Load load(words[0], words[1], static_cast<size_t>(bytes), std::move(blocks),
            static_cast<unsigned>(std::atol(words[5].c_str())));
  load.Run(rate, Seconds(seconds));
  std::printf("%s\n", load.Report().c_str());
}
