// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"
#include "model/systems/hdfs_group.h"
#include "requestor/endpoint/request_kinds.h"

namespace ecpipe {
namespace {

// Pairs the targets' indices with their lengths.
std::vector<EndpointRequest::Target> TargetsOf(RequestFields* fields) {
  const std::vector<int> indices = fields->Numbers<int>("target");
  const std::vector<uint64_t> bytes = fields->Numbers<uint64_t>("bytes");
  if (indices.size() != bytes.size()) fields->Refuse("'bytes' must have a number for each target");
  std::vector<EndpointRequest::Target> targets;
  for (size_t i = 0; i < std::min(indices.size(), bytes.size()); ++i) {
    targets.push_back({indices[i], bytes[i]});
  }
  return targets;
}

absl::Status CheckTargets(const HdfsGroup& group, EndpointRequest* request) {
  if (request->targets.size() > static_cast<size_t>(group.parity)) {
    return absl::InvalidArgumentError("there are more targets than the " +
                                      std::to_string(group.parity) +
                                      " blocks that the group can lose");
  }
  int before = -1;
  for (EndpointRequest::Target& target : request->targets) {
    if (target.index < 0 || target.index >= group.blocks()) {
      return absl::InvalidArgumentError("the block group has no block " +
                                        std::to_string(target.index));
    }
    ECPIPE_RETURN_IF_ERROR(CheckRangeInBlock(request->offset, target.bytes, target.index,
                                             group.BlockBytes(target.index)));
    if (target.index <= before)
      return absl::InvalidArgumentError("the targets are not in ascending order");
    before = target.index;
    target.block_id = group.BlockName(target.index);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHdfsRequest(RequestFields* fields, EndpointRequest* request) {
  HdfsGroup group;
  group.pool = fields->Text("pool");
  group.group = fields->Number<int64_t>("group");
  group.stamp = fields->Number<uint64_t>("stamp");
  group.bytes = fields->Number<uint64_t>("group-bytes");
  group.codec = fields->Text("codec");
  group.data = fields->Number<int>("data");
  group.parity = fields->Number<int>("parity");
  group.cell_bytes = fields->Number<uint64_t>("cell");
  group.sources = fields->Sources(HdfsGroup::kMaxSources);
  request->targets = TargetsOf(fields);
  ECPIPE_RETURN_IF_ERROR(fields->Finish());
  ECPIPE_RETURN_IF_ERROR(group.Validate());
  ECPIPE_RETURN_IF_ERROR(CheckTargets(group, request));
  request->facts = group.Facts();
  return absl::OkStatus();
}

}  // namespace ecpipe
