// SPDX-License-Identifier: Apache-2.0
#include "model/block_checksums.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

#include "base/bytes/crc32c.h"
#include "base/bytes/little_endian.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr char kPrefix[] = ".crc32c.";
constexpr uint8_t kMagic[4] = {'E', 'C', 'P', 'C'};
constexpr uint8_t kVersion = 1;
constexpr size_t kHeaderBytes = 24;
constexpr size_t kEntryBytes = 4;
constexpr uint64_t kWindowEntries = 1024;  // one page of the file

using Header = std::array<uint8_t, kHeaderBytes>;

Header MakeHeader(uint64_t block_bytes) {
  Header header{};
  std::copy(std::begin(kMagic), std::end(kMagic), header.begin());
  header[4] = kVersion;
  PutLittleEndian(header, 8, block_bytes);
  PutLittleEndian(header, 16, kChecksumChunkBytes);
  PutLittleEndian(header, 20, Crc32c(std::span<const uint8_t>(header).first(20)));
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
  return ChecksumFileWriter(std::move(file), kHeaderBytes);
}

absl::StatusOr<ChecksumFileWriter> ChecksumFileWriter::CreateBelow(
    int directory, const std::string& path, const std::string& block_id,
    const AtomicFile::Options& options) {
  ECPIPE_ASSIGN_OR_RETURN(
      AtomicFile file,
      AtomicFile::CreateBelow(directory, path + "/" + ChecksumFileName(block_id), options));
  return ChecksumFileWriter(std::move(file), kHeaderBytes);
}

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

absl::Status ChecksumFileWriter::Commit() {
  if (block_bytes_ % kChecksumChunkBytes != 0) EndChunk();
  ECPIPE_RETURN_IF_ERROR(FlushEntries());
  ECPIPE_RETURN_IF_ERROR(file_.WriteAt(0, MakeHeader(block_bytes_)));
  return file_.Commit();
}

absl::StatusOr<ChecksumFile> ChecksumFile::Open(UniqueFd fd, uint64_t block_bytes) {
  Header header{};
  const absl::Status read = ReadFully(fd.get(), 0, header);
  if (absl::IsOutOfRange(read)) {
    return absl::DataLossError("its checksum file is too short to hold a header");
  }
  ECPIPE_RETURN_IF_ERROR(Annotate(read, "checksum file"));
  const uint64_t said = GetLittleEndian<uint64_t>(header, 8);
  if (header != MakeHeader(said)) {
    return absl::DataLossError(
        "its checksum file has a header that is damaged or of an unknown format");
  }
  if (said != block_bytes) {
    return absl::DataLossError("it has " + std::to_string(block_bytes) +
                               " bytes, but its checksum file is for a block of " +
                               std::to_string(said) + " bytes");
  }
  return ChecksumFile(std::move(fd), (block_bytes + kChecksumChunkBytes - 1) / kChecksumChunkBytes);
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
