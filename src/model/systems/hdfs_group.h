// SPDX-License-Identifier: Apache-2.0
// What HDFS knows of a block group. The rest follows by arithmetic: the names and lengths of the
// blocks, which of them exist, and the code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/stripe_facts.h"

namespace ecpipe {

struct HdfsGroup {
  // HDFS's own limit: ids of groups are multiples of it.
  static constexpr int kMaxBlocks = 16;
  // Of one group. Surplus replicas and DataNodes that are being decommissioned can give a block
  // more than one source.
  static constexpr size_t kMaxSources = 128;

  std::string pool;
  int64_t group = 0;   // the group's id, which is that of its first internal block
  uint64_t stamp = 0;  // the generation stamp of all its blocks
  uint64_t bytes = 0;  // bytes of data in the group, parity not counted
  std::string codec;   // "rs", "rs-legacy" or "xor"
  int data = 0;        // k
  int parity = 0;
  uint64_t cell_bytes = 0;
  // DataNodes that have a replica of a block, by their UUID; in any order.
  std::vector<StripeFacts::Source> sources;

  int blocks() const { return data + parity; }

  // INVALID_ARGUMENT, naming what is wrong: a field out of its range, or facts that contradict each
  // other, such as a source of a block that is empty in a group of this length. The other functions
  // require a valid group and an index below blocks().
  absl::Status Validate() const;

  std::string BlockName(int index) const;
  std::string StripeId() const;
  // 0: the block does not exist.
  uint64_t BlockBytes(int index) const;
  StripeFacts Facts() const;

  friend bool operator==(const HdfsGroup&, const HdfsGroup&) = default;
};

}  // namespace ecpipe
