// SPDX-License-Identifier: Apache-2.0
// HDFS's block groups as the NameNode knows them: generation, length and policy of each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/systems/hdfs_group.h"

namespace ecpipe {

// 32 bytes; names are kept once, in the table.
struct BlockGroup {
  int64_t id = 0;
  uint64_t stamp = 0;
  uint64_t bytes = 0;
  uint16_t pool = 0;
  uint16_t policy = 0;
};

// Built once, then read by any thread.
class GroupTable {
 public:
  // 320 MB, and twice that while a new table is made.
  static constexpr size_t kMaxGroups = 10'000'000;
  // Custom policies and federated NameNodes are few.
  static constexpr size_t kMaxPools = 64;
  static constexpr size_t kMaxPolicies = 1024;

  // RESOURCE_EXHAUSTED beyond these.
  absl::Status Add(const std::string& pool, int64_t id, uint64_t stamp, uint64_t bytes,
                   const std::string& policy);
  // Call it after the last group. If a group came twice, the newer generation counts.
  void Seal();

  // The calls below require Seal().
  size_t size() const { return groups_.size(); }
  const std::vector<BlockGroup>& groups() const { return groups_; }  // by pool, then id
  const std::string& PoolOf(const BlockGroup& group) const { return pools_[group.pool]; }
  // Null if there is none. Valid as long as the table.
  const BlockGroup* Find(const std::string& pool, int64_t id) const;
  // What follows from the policy, without sources. FAILED_PRECONDITION: ECPipe cannot repair the
  // group's policy, or the group is empty.
  absl::StatusOr<HdfsGroup> GroupOf(const BlockGroup& group) const;

 private:
  std::vector<std::string> pools_;
  std::vector<std::string> policies_;
  std::vector<BlockGroup> groups_;
};

}  // namespace ecpipe
