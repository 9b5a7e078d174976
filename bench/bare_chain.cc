// SPDX-License-Identifier: Apache-2.0
// The least that a chain of helpers can cost on a machine: one single-threaded process a hop over
// blocking sockets, with no daemon, checksum, frame, plan or deadline. bench/lab.py runs one on
// each node (`--schemes bare-chain`), so that the engine is measured against it on the same links.
//
//   bare_chain [--checksums] BYTES SLICE_BYTES UPSTREAM|- BLOCK_FILE COEFFICIENT
//       a helper: prints {"port"}
//   bare_chain [--checksums] BYTES SLICE_BYTES UPSTREAM OUTPUT_FILE
//       the requestor
//
// With --checksums a CRC32C follows each slice, made by its sender and compared by its receiver, as
// the engine's frames have one (`--schemes bare-chain-crc`).
//
// Each prints {"seconds", "cpu_seconds"} at its end. Any error ends it with exit code 1.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes/aligned_buffer.h"
#include "base/bytes/crc32c.h"
#include "base/file_io.h"
#include "base/process/process_stats.h"
#include "codec/kernel.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

constexpr char kLocalAddress[] = "0.0.0.0";
constexpr unsigned kPatienceSeconds = 120;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::exit(1);
}

UniqueFd Blocking(UniqueFd fd) {
  Require(::fcntl(fd.get(), F_SETFL, 0) == 0, "fcntl");
  return fd;
}

UniqueFd ConnectTo(const std::string& address) {
  UniqueFd fd = Blocking(StartConnect(ParseHostPort(address).value()).value());
  uint8_t nothing = 0;
  // A write of no bytes waits until the connection stands.
  Require(::send(fd.get(), &nothing, 0, MSG_NOSIGNAL) == 0, address.c_str());
  return fd;
}

UniqueFd AcceptOne() {
  const UniqueFd listener = Blocking(Listen({kLocalAddress, 0}).value());
  std::printf("{\"port\": %d}\n", BoundAddress(listener.get()).value().port);
  std::fflush(stdout);
  UniqueFd fd(::accept(listener.get(), nullptr, nullptr));
  Require(fd.valid(), "accept");
  return fd;
}

// A slice, and behind it room for its checksum.
struct Slice {
  explicit Slice(size_t bytes) : buffer(bytes + sizeof(uint32_t)) {}
  uint8_t* data() { return buffer.data(); }

  AlignedBuffer buffer;
};

void SendAll(int fd, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    Require(sent > 0, "send");
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
}

void Send(int fd, Slice* slice, size_t bytes, bool checksums) {
  if (checksums) {
    const uint32_t checksum = Crc32c({slice->data(), bytes});
    std::memcpy(slice->data() + bytes, &checksum, sizeof checksum);
  }
  SendAll(fd, {slice->data(), bytes + (checksums ? sizeof(uint32_t) : 0)});
}

void Receive(int fd, Slice* slice, size_t bytes, bool checksums) {
  const size_t wanted = bytes + (checksums ? sizeof(uint32_t) : 0);
  Require(::recv(fd, slice->data(), wanted, MSG_WAITALL) == static_cast<ssize_t>(wanted),
          "receive");
  if (!checksums) return;
  uint32_t checksum = 0;
  std::memcpy(&checksum, slice->data() + bytes, sizeof checksum);
  Require(checksum == Crc32c({slice->data(), bytes}), "compare the checksum of a slice");
}

struct Range {
  uint64_t bytes;
  uint64_t slice_bytes;
  bool checksums;
};

template <typename OneSlice>
void ForEachSlice(const Range& range, OneSlice one_slice) {
  for (uint64_t at = 0; at < range.bytes; at += range.slice_bytes) {
    one_slice(at, static_cast<size_t>(std::min(range.slice_bytes, range.bytes - at)));
  }
}

void RunHelper(const Range& range, const std::string& upstream, const char* block_file,
               uint8_t coefficient) {
  const UniqueFd down = AcceptOne();
  const UniqueFd up = upstream == "-" ? UniqueFd() : ConnectTo(upstream);
  const UniqueFd block = OpenForReading(block_file).value();
  const CoefficientColumn column(std::span(&coefficient, 1));
  Slice sum(range.slice_bytes);
  AlignedBuffer local(range.slice_bytes);
  uint8_t* const rows[] = {sum.data()};
  ForEachSlice(range, [&](uint64_t at, size_t bytes) {
    if (up.valid()) Receive(up.get(), &sum, bytes, range.checksums);
    Require(ReadFully(block.get(), at, {local.data(), bytes}).ok(), "read");
    if (up.valid()) {
      column.MultiplyAdd(rows, local.data(), bytes);
    } else {
      column.Multiply(rows, local.data(), bytes);
    }
    Send(down.get(), &sum, bytes, range.checksums);
  });
}

void RunRequestor(const Range& range, const std::string& upstream, const char* output_file) {
  const UniqueFd up = ConnectTo(upstream);
  const UniqueFd output(::open(output_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  Require(output.valid(), output_file);
  Slice slice(range.slice_bytes);
  ForEachSlice(range, [&](uint64_t at, size_t bytes) {
    Receive(up.get(), &slice, bytes, range.checksums);
    Require(WriteFully(output.get(), at, {slice.data(), bytes}).ok(), "write");
  });
}

int Main(int argc, char** argv) {
  std::vector<const char*> arguments(argv + 1, argv + argc);
  const bool checksums = !arguments.empty() && std::string(arguments[0]) == "--checksums";
  if (checksums) arguments.erase(arguments.begin());
  if (arguments.size() != 4 && arguments.size() != 5) {
    std::fprintf(stderr, "usage: see bench/bare_chain.cc\n");
    return 1;
  }
  ::alarm(kPatienceSeconds);  // a hop that is gone must not leave the others behind
  const Range range{std::strtoull(arguments[0], nullptr, 10),
                    std::strtoull(arguments[1], nullptr, 10), checksums};
  const auto begin = std::chrono::steady_clock::now();
  if (arguments.size() == 5) {
    RunHelper(range, arguments[2], arguments[3], static_cast<uint8_t>(std::atoi(arguments[4])));
  } else {
    RunRequestor(range, arguments[2], arguments[3]);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f}\n", seconds.count(), ProcessCpuSeconds());
  return 0;
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) { return ecpipe::Main(argc, argv); }
