// SPDX-License-Identifier: Apache-2.0
// What a DataNode leaves on its disks, and names of its blocks: refused, or read to the byte with
// each chunk's checksum right.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "helper/store/hdfs_meta.h"
#include "helper/store/hdfs_replica.h"
#include "helper/store/hdfs_volume.h"
#include "model/block_id.h"
#include "model/systems/hdfs_block.h"

namespace ecpipe {
namespace {

UniqueFd FileOf(const std::string& bytes) {
  UniqueFd fd(::memfd_create("hdfs", MFD_CLOEXEC));
  ECPIPE_CHECK(fd.valid());
  ECPIPE_CHECK(::write(fd.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  return fd;
}

void CheckName(const std::string& name) {
  const auto block = ParseHdfsBlock(name);
  if (!block.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(block.status()));
    return;
  }
  ECPIPE_CHECK(block->Name() == name && ValidateBlockId(name).ok());
  for (const std::string& directory : ReplicaDirectory(*block)) {
    ECPIPE_CHECK(directory.find('/') == std::string::npos && directory[0] != '.');
  }
}

// The checksums of the chunks that a range touches, computed anew.
bool RangeIsRight(const std::string& meta, const std::string& data, const ChecksumKind& kind,
                  size_t offset, size_t bytes) {
  const size_t chunk_bytes = kind.bytes_per_checksum;
  for (size_t chunk = offset / chunk_bytes; chunk * chunk_bytes < offset + bytes; ++chunk) {
    const std::string piece = data.substr(chunk * chunk_bytes, chunk_bytes);
    const uint32_t crc = ExtendHdfsChecksum(
        kind.type, 0, {reinterpret_cast<const uint8_t*>(piece.data()), piece.size()});
    const std::span<const uint8_t> checksums(
        reinterpret_cast<const uint8_t*>(meta.data()) + kHdfsMetaHeaderBytes,
        meta.size() - kHdfsMetaHeaderBytes);
    if (HdfsChecksumAt(checksums, chunk) != crc) return false;
  }
  return true;
}

void CheckReplica(const std::string& meta, size_t offset, const std::string& data) {
  const auto replica = OpenHdfsReplica("block", FileOf(data), FileOf(meta));
  if (!replica.ok()) {
    ECPIPE_CHECK(absl::IsDataLoss(replica.status()) ||
                 absl::IsFailedPrecondition(replica.status()));
    return;
  }
  BlockReader& block = **replica;
  ECPIPE_CHECK(block.bytes() == data.size() && block.checksum().has_value());
  if (data.empty()) return;
  offset %= data.size();
  std::vector<uint8_t> out((data.size() - offset + 1) / 2);
  const absl::Status read = block.ReadAt(offset, out);
  ECPIPE_CHECK(read.ok() == RangeIsRight(meta, data, *block.checksum(), offset, out.size()));
  ECPIPE_CHECK(read.ok() || absl::IsDataLoss(read));
  if (read.ok()) {
    ECPIPE_CHECK(std::string(out.begin(), out.end()) == data.substr(offset, out.size()));
  }
}

}  // namespace
}  // namespace ecpipe

// A block's name, a VERSION file, a .meta file, where to read, the block.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ecpipe::FuzzInput input(data, size);
  ecpipe::CheckName(input.Text());
  if (const auto uuid = ecpipe::DatanodeUuidIn(input.Text()); uuid.ok()) {
    ECPIPE_CHECK(ecpipe::ValidateBlockId(*uuid).ok());
  }
  const std::string meta = input.Text();
  const auto offset = input.Take<uint16_t>();
  ecpipe::CheckReplica(meta, offset, input.Rest());
  return 0;
}
