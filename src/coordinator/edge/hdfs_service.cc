// SPDX-License-Identifier: Apache-2.0
// CoordinatorService, what it does for HDFS.
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "model/hdfs_block.h"
#include "rpc/access.h"
#include "rpc/convert/block_report_proto.h"
#include "rpc/convert/node_loss_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {

grpc::Status CoordinatorServiceImpl::ReportBlocks(
    grpc::ServerContext* context, grpc::ServerReader<v1::ReportBlocksRequest>* pieces,
    v1::ReportBlocksResponse* response) {
  ReportAssembler assembler;
  v1::ReportBlocksRequest piece;
  while (pieces->Read(&piece)) {
    if (absl::Status own = CheckSpeaksFor(context, piece.node_id()); !own.ok()) return ToGrpc(own);
    if (absl::Status added = assembler.Add(piece); !added.ok()) return ToGrpc(added);
  }
  if (!assembler.complete()) {
    return ToGrpc(absl::CancelledError("the report ended before its last message"));
  }
  const std::string name = assembler.report().node;
  const absl::StatusOr<ReportedBlocks::Outcome> outcome =
      hdfs_->Take(std::move(assembler.report()));
  if (!outcome.ok()) return ToGrpc(outcome.status());
  repairs_->nodes().Heard(name);
  response->set_send_all(*outcome == ReportedBlocks::Outcome::kSendAll);
  return grpc::Status::OK;
}

absl::Status CoordinatorServiceImpl::FindFacts(RepairRequest* request) const {
  if (request->block_ids.empty() || !ParseHdfsBlock(request->block_ids[0]).ok()) {
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(catalog_->FindBlock(request->block_ids[0]).status())) {
    return absl::OkStatus();
  }
  ECPIPE_ASSIGN_OR_RETURN(request->facts, hdfs_->FactsOf(request->block_ids[0]));
  return absl::OkStatus();
}

grpc::Status CoordinatorServiceImpl::GetNodeLoss(grpc::ServerContext*,
                                                 const v1::GetNodeLossRequest* request,
                                                 v1::GetNodeLossResponse* response) {
  const absl::StatusOr<std::optional<NodeLoss>> found =
      hdfs_->LossOfNode(request->node_id(), repairs_->RunningBlocks());
  if (!found.ok()) return ToGrpc(found.status());
  if (!*found) return grpc::Status::OK;
  NodeLossToProto(**found, response);
  return grpc::Status::OK;
}

void CoordinatorServiceImpl::HdfsToStatus(v1::GetStatusResponse* response) {
  const std::optional<HdfsStatus> status = hdfs_->Status();
  if (!status) return;
  v1::HdfsStatus* const proto = response->mutable_hdfs();
  *proto->mutable_facts() = HdfsFactsToProto(hdfs_->FactsFrom(status->groups, status->safe_mode));
  proto->mutable_facts()->set_last_error(status->last_error);
  proto->set_nodes(status->nodes);
  proto->set_blocks(status->blocks);
  proto->set_degraded_groups(status->health.degraded);
  proto->set_lost_groups(status->health.lost);
}

void CoordinatorServiceImpl::DataNodeToStatus(const NodeView& view,
                                              v1::GetStatusResponse::Node* proto) {
  if (view.record.storage_id.empty()) return;
  const DataNodeState state = hdfs_->StateOf(view);
  proto->set_reported_blocks(hdfs_->Reports(view));
  proto->set_state_in_hdfs(StateInHdfs(state));
  if (state.in_hdfs) proto->set_silent_in_hdfs_seconds(state.in_hdfs->silent_seconds);
}

}  // namespace ecpipe
