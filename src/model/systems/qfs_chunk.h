// SPDX-License-Identifier: Apache-2.0
// QFS's chunks by name, and where they lie in their files.
//
// A chunk is "qfs.<file>.<chunk>.<version>", such as "qfs.5.65539.1"; its file on a chunkserver has
// that name without "qfs.". The version is a part of the name, so that a chunk of another version
// is another block.
//
// The chunks of an erasure-coded file have places of 64 MiB each in a row of their own, the file's
// chunk addresses. k + m places in a row form a group: k data chunks, then m recovery chunks. Cells
// of the file go round the data chunks. A chunk without a byte does not exist.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

inline constexpr uint64_t kQfsChunkBytes = uint64_t{64} << 20;
// The pool of chunks in reports of blocks (model/block_report.h): their ids are of a file system.
inline constexpr char kQfsPool[] = "qfs";

struct QfsChunkId {
  int64_t file = 0;     // 1 or more, as is `chunk`
  int64_t chunk = 0;    // of no other chunk of the file system
  int64_t version = 0;  // 0 or more; others are of object stores, which have other files

  std::string Name() const;      // as all of ECPipe has it (block_id.h)
  std::string FileName() const;  // on a chunkserver

  friend bool operator==(const QfsChunkId&, const QfsChunkId&) = default;
};

// INVALID_ARGUMENT for a text that Name() does not write.
absl::StatusOr<QfsChunkId> ParseQfsChunk(const std::string& name);
// The same of the name of a file; nullopt for one that FileName() does not write.
std::optional<QfsChunkId> QfsChunkOfFile(const std::string& file_name);

// How a file is striped.
struct QfsFile {
  int64_t file = 0;
  uint64_t bytes = 0;
  int striper = 0;          // 2: QFS's own code; 3: Jerasure's
  int data = 0;             // k
  int parity = 0;           // m
  uint64_t cell_bytes = 0;  // "stripe size" in QFS's words

  int blocks() const { return data + parity; }

  // INVALID_ARGUMENT, naming what is wrong: what QFS does not have, or a code that is not known.
  // The other functions require a valid file.
  absl::Status Validate() const;

  std::string Code() const;  // a name that CreateErasureCode takes
  uint64_t groups() const;
  // The length of a chunk of a group; 0: it does not exist.
  uint64_t ChunkBytes(uint64_t group, int index) const;
  std::string StripeId(uint64_t group) const;
  uint64_t GroupAddress(uint64_t group) const;  // the chunk address of its first chunk

  friend bool operator==(const QfsFile&, const QfsFile&) = default;
};

// A chunk in its file.
struct QfsPlace {
  QfsFile file;
  QfsChunkId id;
  uint64_t address = 0;  // its chunk address

  uint64_t group() const { return address / kQfsChunkBytes / static_cast<uint64_t>(file.blocks()); }
  int index() const {
    return static_cast<int>(address / kQfsChunkBytes % static_cast<uint64_t>(file.blocks()));
  }
  uint64_t bytes() const { return file.ChunkBytes(group(), index()); }

  // INVALID_ARGUMENT also for an address that no chunk has, or that is behind the end of the file.
  absl::Status Validate() const;

  // As a claim of a request (RepairTarget.claim), and back.
  std::string Claim() const;
  static absl::StatusOr<QfsPlace> OfClaim(const std::string& claim);

  friend bool operator==(const QfsPlace&, const QfsPlace&) = default;
};
// The first of the fields in which both differ: "file-size is 5 and not 7"; empty: none.
std::string DifferenceOf(const QfsPlace& is, const QfsPlace& said);

// The storage id that the helper beside a chunkserver registers: "qfs.10.0.0.7_22000" for
// "10.0.0.7:22000". INVALID_ARGUMENT: not HOST:PORT, or characters that no id has.
absl::StatusOr<std::string> QfsStorageId(const std::string& chunkserver);
bool IsQfsStorageId(const std::string& storage_id);

}  // namespace ecpipe
