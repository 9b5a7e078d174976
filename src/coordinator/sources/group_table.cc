// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/group_table.h"

#include <algorithm>
#include <tuple>

#include "base/status.h"
#include "model/systems/hdfs_policy.h"

namespace ecpipe {
namespace {

// The number of a name, which is given one if it has none. Names come in long rows of equal ones,
// and are few.
absl::StatusOr<uint16_t> NumberOfName(const std::string& name, size_t most, const char* what,
                                      std::vector<std::string>* names) {
  auto found = std::find(names->rbegin(), names->rend(), name);
  if (found == names->rend()) {
    if (names->size() == most) {
      return absl::ResourceExhaustedError("the NameNode lists more than " + std::to_string(most) +
                                          " " + what);
    }
    names->push_back(name);
    found = names->rbegin();
  }
  return static_cast<uint16_t>(names->rend() - found - 1);
}

auto OrderOf(const BlockGroup& group) { return std::tuple(group.pool, group.id); }

}  // namespace

absl::Status GroupTable::Add(const std::string& pool, int64_t id, uint64_t stamp, uint64_t bytes,
                             const std::string& policy) {
  if (groups_.size() == kMaxGroups) {
    return absl::ResourceExhaustedError("the NameNode lists more than " +
                                        std::to_string(kMaxGroups) + " block groups");
  }
  BlockGroup group{id, stamp, bytes, 0, 0};
  ECPIPE_ASSIGN_OR_RETURN(group.pool, NumberOfName(pool, kMaxPools, "block pools", &pools_));
  ECPIPE_ASSIGN_OR_RETURN(group.policy, NumberOfName(policy, kMaxPolicies, "policies", &policies_));
  groups_.push_back(group);
  return absl::OkStatus();
}

void GroupTable::Seal() {
  std::sort(groups_.begin(), groups_.end(), [](const BlockGroup& a, const BlockGroup& b) {
    return std::tuple_cat(OrderOf(a), std::tuple(b.stamp)) <
           std::tuple_cat(OrderOf(b), std::tuple(a.stamp));
  });
  const auto same = [](const BlockGroup& a, const BlockGroup& b) {
    return OrderOf(a) == OrderOf(b);
  };
  groups_.erase(std::unique(groups_.begin(), groups_.end(), same), groups_.end());
  groups_.shrink_to_fit();
}

const BlockGroup* GroupTable::Find(const std::string& pool, int64_t id) const {
  const auto name = std::find(pools_.begin(), pools_.end(), pool);
  if (name == pools_.end()) return nullptr;
  BlockGroup wanted;
  wanted.id = id;
  wanted.pool = static_cast<uint16_t>(name - pools_.begin());
  const auto group = std::lower_bound(
      groups_.begin(), groups_.end(), wanted,
      [](const BlockGroup& a, const BlockGroup& b) { return OrderOf(a) < OrderOf(b); });
  return group != groups_.end() && OrderOf(*group) == OrderOf(wanted) ? &*group : nullptr;
}

absl::StatusOr<HdfsGroup> GroupTable::GroupOf(const BlockGroup& group) const {
  const std::string what = "group " + std::to_string(group.id);
  const absl::StatusOr<HdfsPolicy> policy = ParseHdfsPolicy(policies_[group.policy]);
  if (!policy.ok()) {
    return absl::FailedPreconditionError(what + ": " + std::string(policy.status().message()));
  }
  HdfsGroup known;
  known.pool = pools_[group.pool];
  known.group = group.id;
  known.stamp = group.stamp;
  known.bytes = group.bytes;
  known.codec = policy->codec;
  known.data = policy->data;
  known.parity = policy->parity;
  known.cell_bytes = policy->cell_bytes;
  if (const absl::Status valid = known.Validate(); !valid.ok()) {
    return absl::FailedPreconditionError(what + ": " + std::string(valid.message()));
  }
  return known;
}

}  // namespace ecpipe
