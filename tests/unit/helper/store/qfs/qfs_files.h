// SPDX-License-Identifier: Apache-2.0
// Chunk files as a chunkserver writes them, for tests.
#pragma once

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes/little_endian.h"
#include "model/systems/qfs_chunk.h"

namespace ecpipe {

using QfsBytes = std::vector<uint8_t>;

inline QfsBytes QfsContent(size_t bytes, uint32_t seed = 1) {
  QfsBytes content(bytes);
  for (uint8_t& byte : content) {
    seed = seed * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(seed >> 24);
  }
  return content;
}

// The 16 KiB before the data.
inline QfsBytes QfsFileHeader(const QfsChunkId& chunk, const QfsBytes& content) {
  QfsBytes header(16384, 0);
  const std::span<uint8_t> out(header);
  PutLittleEndian(out, 0, uint32_t{0xCAFECAFE});
  PutLittleEndian(out, 4, uint32_t{1});
  PutLittleEndian(out, 8, static_cast<uint64_t>(chunk.file));
  PutLittleEndian(out, 16, static_cast<uint64_t>(chunk.chunk));
  PutLittleEndian(out, 24, static_cast<uint64_t>(chunk.version));
  PutLittleEndian(out, 32, uint64_t{content.size()});
  for (size_t at = 0, block = 0; at < content.size(); at += 65536, ++block) {
    QfsBytes padded(
        content.begin() + static_cast<std::ptrdiff_t>(at),
        content.begin() + static_cast<std::ptrdiff_t>(std::min(content.size(), at + 65536)));
    padded.resize(65536, 0);
    PutLittleEndian(out, 40 + 4 * block, static_cast<uint32_t>(::adler32(1, padded.data(), 65536)));
  }
  const std::string id("\0QFSFsId\xe4\x5e\x23\x0e\x34\x9a\x07\xce", 16);
  std::copy(id.begin(), id.end(), header.begin() + 4140);
  PutLittleEndian(out, 4400, uint64_t{::adler32(1, header.data(), 4400)});
  return header;
}

inline void WriteBytes(const std::string& path, const QfsBytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// `surplus` zeros follow the data, as in a chunk that was recovered and is still open.
inline std::string WriteQfsChunk(const std::string& directory, const QfsChunkId& chunk,
                                 const QfsBytes& content, size_t surplus = 0) {
  std::filesystem::create_directories(directory);
  QfsBytes bytes = QfsFileHeader(chunk, content);
  bytes.insert(bytes.end(), content.begin(), content.end());
  bytes.resize(bytes.size() + surplus, 0);
  const std::string path = directory + "/" + chunk.FileName();
  WriteBytes(path, bytes);
  return path;
}

}  // namespace ecpipe
