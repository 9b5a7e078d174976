// SPDX-License-Identifier: Apache-2.0
// Directories as a DataNode leaves them.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "helper/store/hdfs_meta.h"
#include "model/systems/hdfs_block.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {

class HdfsVolumeFixture {
 public:
  explicit HdfsVolumeFixture(const std::string& path, const std::string& uuid = "dn-uuid-1")
      : path_(path) {
    std::filesystem::create_directories(path + "/current");
    Write(path + "/current/VERSION",
          "#Sun Nov 22 02:00:00 UTC 2026\nstorageID=DS-1\n"
          "datanodeUuid=" +
              uuid + "\nstorageType=DATA_NODE\n");
  }

  const std::string& path() const { return path_; }

  static std::string Noise(size_t bytes) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 7 + i / 256 + i / 1000);
    return text;
  }

  static std::string MetaOf(const std::string& data, const ChecksumKind& kind = {}) {
    std::string meta = {0, 1, kind.type == ChecksumKind::Type::kCrc32 ? '\1' : '\2'};
    Append(kind.bytes_per_checksum, &meta);
    for (size_t at = 0; at < data.size(); at += kind.bytes_per_checksum) {
      const std::string chunk = data.substr(at, kind.bytes_per_checksum);
      Append(ExtendHdfsChecksum(kind.type, 0,
                                {reinterpret_cast<const uint8_t*>(chunk.data()), chunk.size()}),
             &meta);
    }
    return meta;
  }

  std::string Directory(const HdfsBlock& block) const {
    return path_ + "/current/" + block.pool + "/current/finalized/subdir" +
           std::to_string((block.id >> 16) & 31) + "/subdir" + std::to_string((block.id >> 8) & 31);
  }
  std::string DataFile(const HdfsBlock& block) const {
    return Directory(block) + "/blk_" + std::to_string(block.id);
  }
  std::string MetaFile(const HdfsBlock& block) const {
    return DataFile(block) + "_" + std::to_string(block.stamp) + ".meta";
  }

  void Put(const HdfsBlock& block, const std::string& data, const ChecksumKind& kind = {}) const {
    std::filesystem::create_directories(Directory(block));
    Write(DataFile(block), data);
    Write(MetaFile(block), MetaOf(data, kind));
  }
  void Remove(const HdfsBlock& block) const {
    std::filesystem::remove(DataFile(block));
    std::filesystem::remove(MetaFile(block));
  }

  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  // In place: whoever has the file open sees it.
  static void Overwrite(const std::string& path, size_t at, const std::string& text) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file << text;
  }

 private:
  static void Append(uint32_t value, std::string* text) {
    for (int shift = 24; shift >= 0; shift -= 8) *text += static_cast<char>(value >> shift);
  }

  const std::string path_;
};

}  // namespace ecpipe
