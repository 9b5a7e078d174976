// SPDX-License-Identifier: Apache-2.0
// What a chunkserver leaves on its disks, and names of its chunks: refused, or read to the byte,
// with each block's checksum right.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "helper/store/qfs/qfs_chunk_file.h"
#include "helper/store/qfs/qfs_header.h"
#include "model/block_id.h"

namespace ecpipe {
namespace {

UniqueFd FileOf(const std::string& header, const std::string& data) {
  UniqueFd fd(::memfd_create("qfs", MFD_CLOEXEC));
  ECPIPE_CHECK(fd.valid());
  const std::string bytes = header + std::string(kQfsDataOffset - header.size(), '\0') + data;
  ECPIPE_CHECK(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return fd;
}

void CheckName(const std::string& name) {
  const auto chunk = ParseQfsChunk(name);
  if (!chunk.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(chunk.status()));
    return;
  }
  ECPIPE_CHECK(chunk->Name() == name && ValidateBlockId(name).ok());
  ECPIPE_CHECK(QfsChunkOfFile(chunk->FileName()) == *chunk);
}

// By zlib over a copy that is filled up, and not as the reader does it.
bool RangeIsRight(const std::string& header, const std::string& data, size_t offset, size_t bytes) {
  for (size_t block = offset / kQfsChecksumBlock; block * kQfsChecksumBlock < offset + bytes;
       ++block) {
    std::string piece = data.substr(block * kQfsChecksumBlock, kQfsChecksumBlock);
    piece.resize(kQfsChecksumBlock, '\0');
    uint32_t stored = 0;
    for (size_t i = 4; i-- > 0;) {
      stored = stored << 8 | static_cast<uint8_t>(header[40 + 4 * block + i]);
    }
    const auto sum = static_cast<uint32_t>(
        ::adler32(1, reinterpret_cast<const uint8_t*>(piece.data()), kQfsChecksumBlock));
    const bool zeros = piece == std::string(kQfsChecksumBlock, '\0');
    if (stored != sum && !(stored == 0 && zeros)) return false;
  }
  return true;
}

void CheckChunk(const std::string& header, size_t offset, const std::string& data) {
  const auto opened = OpenQfsChunk({5, 65539, 1}, FileOf(header, data));
  if (!opened.ok()) {
    ECPIPE_CHECK(absl::IsDataLoss(opened.status()) || absl::IsFailedPrecondition(opened.status()));
    return;
  }
  BlockReader& chunk = **opened;
  ECPIPE_CHECK(chunk.bytes() <= kQfsChunkBytes && chunk.checksum().has_value());
  if (chunk.bytes() == 0) return;
  // A header that says more than there is: the file ends early, and that is corrupt.
  const auto bytes = static_cast<size_t>(std::min<uint64_t>(chunk.bytes(), 200'000));
  offset %= bytes;
  std::vector<uint8_t> out((bytes - offset + 1) / 2);
  const absl::Status read = chunk.ReadAt(offset, out);
  ECPIPE_CHECK(read.ok() || absl::IsDataLoss(read));
  if (data.size() < chunk.bytes()) return;
  const std::string own = data.substr(0, static_cast<size_t>(chunk.bytes()));
  ECPIPE_CHECK(read.ok() == RangeIsRight(header, own, offset, out.size()));
  if (read.ok()) {
    ECPIPE_CHECK(std::string(out.begin(), out.end()) == own.substr(offset, out.size()));
  }
}

}  // namespace
}  // namespace ecpipe

// A chunk's name, a header, where to read, the data.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ecpipe;
  FuzzInput input(data, size);
  CheckName(input.Text());
  const std::span<const uint8_t> header = input.Bytes(kQfsHeaderBytes);
  std::string text(header.begin(), header.end());
  text.resize(kQfsHeaderBytes, '\0');
  const auto offset = input.Take<uint32_t>();
  CheckChunk(text, offset, input.Rest());
  return 0;
}
