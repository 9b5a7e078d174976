// SPDX-License-Identifier: Apache-2.0
#include "requestor/files/block_files.h"

#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "base/file_io.h"
#include "base/status.h"
#include "model/block_id.h"

namespace ecpipe {

const char* BlockStateName(BlockState state) {
  switch (state) {
    case BlockState::kOk:
      return "ok";
    case BlockState::kMissing:
      return "missing";
    case BlockState::kWrongLength:
      return "wrong length";
    case BlockState::kWrongChecksum:
      return "wrong checksum";
    case BlockState::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

absl::StatusOr<std::string> FindBlock(const std::string& directory, const std::string& node,
                                      const std::string& block_id) {
  ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(block_id), "block id"));
  if (!node.empty()) {
    ECPIPE_RETURN_IF_ERROR(Annotate(ValidateBlockId(node), "node id"));
    std::string path = directory + "/" + node + "/" + block_id;
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  std::string path = directory + "/" + block_id;
  if (::access(path.c_str(), F_OK) == 0) return path;
  return absl::NotFoundError("block " + block_id + " is not in " + directory +
                             (node.empty() ? "" : " or in " + directory + "/" + node));
}

void BlockFile::Reject(BlockState why, std::string text) {
  ECPIPE_CHECK(why != BlockState::kOk);
  state = why;
  detail = std::move(text);
  fd.reset();
}

BlockFile OpenBlock(const std::string& directory, const ManifestBlock& block,
                    uint64_t block_bytes) {
  BlockFile file;
  const auto reject = [&file](const absl::Status& status) {
    file.Reject(absl::IsNotFound(status) ? BlockState::kMissing : BlockState::kUnreadable,
                std::string(status.message()));
    return std::move(file);
  };
  const auto path = FindBlock(directory, block.node, block.block_id);
  if (!path.ok()) return reject(path.status());
  auto fd = OpenForReading(*path);
  if (!fd.ok()) return reject(fd.status());
  const auto bytes = FileBytes(fd->get());
  if (!bytes.ok()) return reject(bytes.status());
  if (*bytes != block_bytes) {
    file.Reject(BlockState::kWrongLength, *path + " has " + std::to_string(*bytes) +
                                              " bytes instead of " + std::to_string(block_bytes));
    return file;
  }
  file.state = BlockState::kOk;
  file.fd = *std::move(fd);
  return file;
}

}  // namespace ecpipe
