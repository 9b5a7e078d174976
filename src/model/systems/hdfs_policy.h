// SPDX-License-Identifier: Apache-2.0
// HDFS-3's erasure coding policies, and their codes by the names of CreateErasureCode.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ecpipe {

// The codec of a policy ("rs", "rs-legacy", "xor") with k data and p parity blocks, as a name that
// CreateErasureCode takes. INVALID_ARGUMENT for any other codec: a guess that is wrong would write
// blocks that HDFS takes for right.
absl::StatusOr<std::string> NameOfHdfsCodec(const std::string& codec, int data, int parity);

// A policy as HDFS names it.
struct HdfsPolicy {
  std::string codec;  // "rs", "rs-legacy" or "xor"
  int data = 0;
  int parity = 0;
  uint64_t cell_bytes = 0;  // 0: the name does not say

  friend bool operator==(const HdfsPolicy&, const HdfsPolicy&) = default;
};

// "RS-6-3-1024k", "RS-LEGACY-6-3-1024k", "XOR-2-1-1024k", with or without the cell size.
// INVALID_ARGUMENT for anything else.
absl::StatusOr<HdfsPolicy> ParseHdfsPolicy(const std::string& name);

// "hdfs:RS-k-p", "hdfs:RS-LEGACY-k-p" and "hdfs:XOR-k-p" as our own names; a text that does not
// begin with "hdfs:" as it is. Policies end with their cell size, such as "-1024k"; it may be there
// and says nothing about the code, which runs over bytes at equal offsets of the blocks.
// INVALID_ARGUMENT for another policy after "hdfs:".
absl::StatusOr<std::string> NameOfHdfsPolicy(const std::string& name);

}  // namespace ecpipe
