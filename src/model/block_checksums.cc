// SPDX-License-Identifier: Apache-2.0
#include "model/block_checksums.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "base/bytes/crc32c.h"
#include "base/bytes/hex.h"
#include "base/bytes/little_endian.h"
#include "base/bytes/sha256.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr char kPrefix[] = ".crc32c.";
constexpr uint8_t kMagic[4] = {'E', 'C', 'P', 'C'};
constexpr uint8_t kVersion = 1;
constexpr size_t kVersionAt = 4;
constexpr size_t kLengthAt = 8;
constexpr size_t kChunkBytesAt = 16;
constexpr size_t kSha256At = 20;
constexpr size_t kIdAt = kSha256At + kSha256Bytes;
constexpr size_t kIdBytes = 248;  // the longest id that can have a checksum file, and a zero
constexpr size_t kCrcAt = kIdAt + kIdBytes;
constexpr size_t kHeaderBytes = kCrcAt + 4;
constexpr size_t kEntryBytes = 4;
constexpr uint64_t kWindowEntries = 1024;  // one page of the file

using Header = std::array<uint8_t, kHeaderBytes>;

int ValueOfHex(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

// `sha256` is a valid one.
Header MakeHeader(const std::string& block_id, const std::string& sha256, uint64_t block_bytes) {
  Header header{};
  std::copy(std::begin(kMagic), std::end(kMagic), header.begin());
  header[kVersionAt] = kVersion;
  PutLittleEndian(header, kLengthAt, block_bytes);
  PutLittleEndian(header, kChunkBytesAt, kChecksumChunkBytes);
  for (size_t i = 0; i < kSha256Bytes; ++i) {
    header[kSha256At + i] =
        static_cast<uint8_t>(ValueOfHex(sha256[2 * i]) << 4 | ValueOfHex(sha256[2 * i + 1]));
  }
  std::copy_n(block_id.begin(), std::min(block_id.size(), kIdBytes - 1), header.begin() + kIdAt);
  PutLittleEndian(header, kCrcAt, Crc32c(std::span<const uint8_t>(header).first(kCrcAt)));
  return header;
}

std::string IdIn(const Header& header) {
  const auto* const id = reinterpret_cast<const char*>(header.data() + kIdAt);
  return {id, ::strnlen(id, kIdBytes)};
}

absl::StatusOr<Header> ReadHeader(int fd) {
  Header header{};
  const std::span<uint8_t> beginning = std::span(header).first(kVersionAt + 1);
  absl::Status read = ReadFully(fd, 0, beginning);
  const bool is_one = std::equal(std::begin(kMagic), std::end(kMagic), header.begin());
  if (read.ok() && is_one && header[kVersionAt] != kVersion) {
    return absl::DataLossError("its checksum file has format " +
                               std::to_string(header[kVersionAt]) +
                               ", and this program knows only format " + std::to_string(kVersion) +
                               ": have the block stored anew");
  }
  if (read.ok()) read = ReadFully(fd, 0, header);
  if (absl::IsOutOfRange(read)) {
    return absl::DataLossError("its checksum file is too short to hold a header");
  }
  ECPIPE_RETURN_IF_ERROR(Annotate(read, "checksum file"));
  return header;
}

}  // namespace

std::string ChecksumFileName(const std::string& block_id) { return kPrefix + block_id; }

std::optional<std::string> BlockOfChecksumFile(const std::string& file_name) {
  if (!file_name.starts_with(kPrefix)) return std::nullopt;
  return file_name.substr(sizeof kPrefix - 1);
}

bool CanHaveChecksumFile(const std::string& block_id) {
  return ChecksumFileName(block_id).size() <= NAME_MAX;
}

absl::StatusOr<ChecksumFileWriter> ChecksumFileWriter::Create(const std::string& directory,
                                                              const std::string& block_id) {
  ECPIPE_ASSIGN_OR_RETURN(AtomicFile file,
                          AtomicFile::Create(directory + "/" + ChecksumFileName(block_id)));
  return ChecksumFileWriter(std::move(file), block_id);
}

absl::StatusOr<ChecksumFileWriter> ChecksumFileWriter::CreateBelow(
    int directory, const std::string& path, const std::string& block_id,
    const AtomicFile::Options& options) {
  ECPIPE_ASSIGN_OR_RETURN(
      AtomicFile file,
      AtomicFile::CreateBelow(directory, path + "/" + ChecksumFileName(block_id), options));
  return ChecksumFileWriter(std::move(file), block_id);
}

ChecksumFileWriter::ChecksumFileWriter(AtomicFile file, std::string block_id)
    : file_(std::move(file)), block_id_(std::move(block_id)), entries_offset_(kHeaderBytes) {}

absl::Status ChecksumFileWriter::Append(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const size_t filled = block_bytes_ % kChecksumChunkBytes;
    const size_t step = std::min<size_t>(bytes.size(), kChecksumChunkBytes - filled);
    chunk_crc_ = ExtendCrc32c(chunk_crc_, bytes.first(step));
    block_bytes_ += step;
    bytes = bytes.subspan(step);
    if (block_bytes_ % kChecksumChunkBytes == 0) EndChunk();
    if (entries_.size() >= kWindowEntries * kEntryBytes) ECPIPE_RETURN_IF_ERROR(FlushEntries());
  }
  return absl::OkStatus();
}

void ChecksumFileWriter::EndChunk() {
  entries_.resize(entries_.size() + kEntryBytes);
  PutLittleEndian(entries_, entries_.size() - kEntryBytes, chunk_crc_);
  chunk_crc_ = 0;
}

absl::Status ChecksumFileWriter::FlushEntries() {
  ECPIPE_RETURN_IF_ERROR(file_.WriteAt(entries_offset_, entries_));
  entries_offset_ += entries_.size();
  entries_.clear();
  return absl::OkStatus();
}

absl::Status ChecksumFileWriter::Commit(const std::string& sha256) {
  if (!IsSha256Hex(sha256)) return absl::InvalidArgumentError("'" + sha256 + "' is no SHA-256");
  if (block_bytes_ % kChecksumChunkBytes != 0) EndChunk();
  ECPIPE_RETURN_IF_ERROR(FlushEntries());
  ECPIPE_RETURN_IF_ERROR(file_.WriteAt(0, MakeHeader(block_id_, sha256, block_bytes_)));
  return file_.Commit();
}

absl::StatusOr<ChecksumFile> ChecksumFile::Open(UniqueFd fd, const std::string& block_id,
                                                uint64_t block_bytes) {
  ECPIPE_ASSIGN_OR_RETURN(const Header header, ReadHeader(fd.get()));
  const uint64_t said = GetLittleEndian<uint64_t>(header, kLengthAt);
  const std::string of_block = IdIn(header);
  std::string sha256 = HexText(std::span(header).subspan(kSha256At, kSha256Bytes));
  if (header != MakeHeader(of_block, sha256, said)) {
    return absl::DataLossError("its checksum file has a damaged header");
  }
  if (of_block != block_id) {
    return absl::DataLossError("its checksum file is for block " + of_block);
  }
  if (said != block_bytes) {
    return absl::DataLossError("it has " + std::to_string(block_bytes) +
                               " bytes, but its checksum file is for a block of " +
                               std::to_string(said) + " bytes");
  }
  return ChecksumFile(std::move(fd), std::move(sha256),
                      (block_bytes + kChecksumChunkBytes - 1) / kChecksumChunkBytes);
}

absl::StatusOr<std::optional<uint32_t>> ChecksumFile::Find(uint64_t chunk, bool at_once) {
  const uint64_t window_end = window_first_ + window_.size() / kEntryBytes;
  if (chunk < window_first_ || chunk >= window_end) {
    const uint64_t first = chunk / kWindowEntries * kWindowEntries;
    ECPIPE_ASSIGN_OR_RETURN(const bool loaded, LoadWindow(first, at_once));
    if (!loaded) return std::optional<uint32_t>();
  }
  return std::optional(
      GetLittleEndian<uint32_t>(window_, static_cast<size_t>(chunk - window_first_) * kEntryBytes));
}

absl::StatusOr<bool> ChecksumFile::LoadWindow(uint64_t first_chunk, bool at_once) {
  const uint64_t count = std::min(kWindowEntries, chunks_ - first_chunk);
  std::vector<uint8_t> window(static_cast<size_t>(count) * kEntryBytes);
  const uint64_t offset = kHeaderBytes + first_chunk * kEntryBytes;
  if (at_once) {
    iovec part{window.data(), window.size()};
    const ssize_t got = ::preadv2(fd_.get(), &part, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    if (got != static_cast<ssize_t>(window.size())) return false;
  } else {
    const absl::Status read = ReadFully(fd_.get(), offset, window);
    if (absl::IsOutOfRange(read)) return absl::DataLossError("its checksum file is too short");
    ECPIPE_RETURN_IF_ERROR(Annotate(read, "checksum file"));
  }
  window_ = std::move(window);
  window_first_ = first_chunk;
  return true;
}

}  // namespace ecpipe
