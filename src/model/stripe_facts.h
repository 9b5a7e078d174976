// SPDX-License-Identifier: Apache-2.0
// What HDFS knows of a block group, as a request for a repair carries it. The coordinator plans
// from it as from a stripe of its catalog. The rest follows by arithmetic: the names and lengths of
// the blocks, which of them exist, and the code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

struct StripeFacts {
  // A DataNode that has a block of the group.
  struct Source {
    int index = 0;
    std::string storage_id;

    friend bool operator==(const Source&, const Source&) = default;
  };
  // HDFS's own limit: ids of groups are multiples of it.
  static constexpr int kMaxBlocks = 16;
  // Surplus replicas and nodes that are being decommissioned can give a block more than one source.
  static constexpr size_t kMaxSources = 128;

  std::string pool;
  int64_t group = 0;   // the group's id, which is that of its first internal block
  uint64_t stamp = 0;  // the generation stamp of all its blocks
  uint64_t bytes = 0;  // bytes of data in the group, parity not counted
  std::string codec;   // "rs", "rs-legacy" or "xor"
  int data = 0;        // k
  int parity = 0;
  uint64_t cell_bytes = 0;
  std::vector<Source> sources;  // one for each replica, in any order

  int blocks() const { return data + parity; }

  // INVALID_ARGUMENT, naming what is wrong: a field out of its range, or facts that contradict each
  // other, such as a source of a block that is empty in a group of this length. The other functions
  // require valid facts and an index below blocks().
  absl::Status Validate() const;

  std::string BlockName(int index) const;
  std::string StripeId() const;
  // 0: the block does not exist.
  uint64_t BlockBytes(int index) const;

  friend bool operator==(const StripeFacts&, const StripeFacts&) = default;
};

}  // namespace ecpipe
