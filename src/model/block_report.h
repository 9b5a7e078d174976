// SPDX-License-Identifier: Apache-2.0
// The report of a helper beside an HDFS DataNode or a QFS chunkserver about the erasure-coded
// blocks on its disks: first all of them, then only what has changed. A value;
// src/rpc/convert/block_report_proto.h sends it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ecpipe {

// A finalized replica of a block, within its pool.
struct InternalBlock {
  // In HDFS negative, and the id of block 0 is also the id of the group; in QFS the chunk's.
  int64_t id = 0;
  uint64_t stamp = 0;  // generation
  uint64_t bytes = 0;

  friend bool operator==(const InternalBlock&, const InternalBlock&) = default;
};

// The id of the group that has the block, and which of the group's blocks it is.
constexpr int64_t GroupOfBlock(int64_t id) { return id & ~int64_t{15}; }
constexpr int IndexInGroup(int64_t id) { return static_cast<int>(id & 15); }

struct BlockChanges {
  struct Added {
    InternalBlock block;
    uint64_t age_ms = 0;  // time from the last change of its file to the sending of the report

    friend bool operator==(const Added&, const Added&) = default;
  };
  std::vector<Added> added;  // new, or changed in any way
  std::vector<int64_t> removed;

  friend bool operator==(const BlockChanges&, const BlockChanges&) = default;
};

struct BlockReport {
  // More than a DataNode is expected to have: a node of 10,000 that share 10^9 blocks has 100,000.
  // The coordinator keeps 24 bytes for each, so at most 240 MB for a DataNode.
  static constexpr uint64_t kMaxBlocks = 10'000'000;
  static constexpr size_t kMaxPools = 16;  // one for each NameNode of a federation

  std::string node;
  uint64_t incarnation = 0;  // of the helper
  uint64_t sequence = 0;     // of this report; 1 or more
  uint64_t after = 0;        // sequence of the report that it continues; 0: it lists all blocks
  std::map<std::string, BlockChanges> pools;

  friend bool operator==(const BlockReport&, const BlockReport&) = default;
};

}  // namespace ecpipe
