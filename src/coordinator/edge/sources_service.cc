// SPDX-License-Identifier: Apache-2.0
// CoordinatorService, what it does for storage systems that know their own stripes.
#include "absl/strings/ascii.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/access.h"
#include "rpc/convert/block_report_proto.h"
#include "rpc/convert/node_loss_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// The helper tries again, ever more seldom. Who has more blocks than are kept should be seen here.
grpc::Status Refused(const std::string& node, const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) {
    Log(LogLevel::kWarning, "blocks.refused", {{"node", node}, {"status", StatusText(why)}});
  }
  return ToGrpc(why);
}

}  // namespace

grpc::Status CoordinatorServiceImpl::ReportBlocks(
    grpc::ServerContext* context, grpc::ServerReader<v1::ReportBlocksRequest>* pieces,
    v1::ReportBlocksResponse* response) {
  SharedRoom::Share room(&report_room_);
  ReportAssembler assembler;
  v1::ReportBlocksRequest piece;
  while (pieces->Read(&piece)) {
    if (absl::Status own = CheckSpeaksFor(context, piece.node_id()); !own.ok()) return ToGrpc(own);
    absl::Status added = absl::ResourceExhaustedError("reports that are under way list " +
                                                      std::to_string(report_room_.most()) +
                                                      " blocks already; it is tried again");
    if (room.Take(BlocksIn(piece))) added = assembler.Add(piece);
    if (!added.ok()) return Refused(piece.node_id(), added);
  }
  if (!assembler.complete()) {
    return ToGrpc(absl::CancelledError("the report ended before its last message"));
  }
  const std::string name = assembler.report().node;
  const std::optional<NodeView> node = repairs_->nodes().Find(name);
  StripeSource* const source = node ? sources_.OfNode(node->record) : nullptr;
  if (source == nullptr) {
    return ToGrpc(absl::NotFoundError(
        "node " + name + " is not registered as a node of a storage system; register it first"));
  }
  const absl::StatusOr<ReportedBlocks::Outcome> outcome =
      source->Record(std::move(assembler.report()));
  if (!outcome.ok()) return Refused(name, outcome.status());
  repairs_->nodes().Heard(name);
  response->set_send_all(*outcome == ReportedBlocks::Outcome::kSendAll);
  return grpc::Status::OK;
}

absl::Status CoordinatorServiceImpl::FindFacts(const std::string& claim, RepairRequest* request) {
  StripeSource* const source =
      request->block_ids.empty() ? nullptr : sources_.OfBlock(request->block_ids[0]);
  if (source == nullptr) {
    if (claim.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("the request says what a storage system knows of a block, " +
                                      std::string("but its name is of none"));
  }
  // Somebody may have loaded the stripe.
  if (claim.empty() && !absl::IsNotFound(catalog_->FindBlock(request->block_ids[0]).status())) {
    return absl::OkStatus();
  }
  if (!request->hosts.empty()) {
    const std::string name = absl::AsciiStrToUpper(source->system());
    return absl::InvalidArgumentError("blocks of " + name + " cannot be stored on nodes by " +
                                      "ECPipe: " + name + " stores its blocks itself");
  }
  ECPIPE_ASSIGN_OR_RETURN(request->facts, source->FactsOf(request->block_ids[0], claim));
  return CheckFacts(*request->facts, &codes_);
}

grpc::Status CoordinatorServiceImpl::GetNodeLoss(grpc::ServerContext*,
                                                 const v1::GetNodeLossRequest* request,
                                                 v1::GetNodeLossResponse* response) {
  const std::optional<NodeView> view = repairs_->nodes().Find(request->node_id());
  StripeSource* const source = view ? sources_.OfNode(view->record) : nullptr;
  if (source == nullptr) return grpc::Status::OK;
  const absl::StatusOr<NodeLoss> loss = source->LossOf(*view, repairs_->RunningBlocks());
  if (!loss.ok()) return ToGrpc(loss.status());
  NodeLossToProto(*loss, response);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::GetFile(grpc::ServerContext*,
                                             const v1::GetFileRequest* request,
                                             v1::GetFileResponse* response) {
  for (StripeSource* source : sources_.all()) {
    if (source->system() != request->system()) continue;
    const absl::StatusOr<StripedFile> file = source->FileAt(request->path(), request->offset());
    if (!file.ok()) return ToGrpc(file.status());
    response->set_file_id(file->id);
    response->set_bytes(file->bytes);
    for (const StripedFile::Part& part : file->parts) {
      v1::GetFileResponse::Part* const added = response->add_parts();
      added->set_offset(part.offset);
      added->set_bytes(part.bytes);
      added->set_cell_bytes(part.cell_bytes);
      for (const std::string& block : part.data_blocks) added->add_data_blocks(block);
    }
    return grpc::Status::OK;
  }
  return ToGrpc(absl::InvalidArgumentError("this coordinator knows no storage system '" +
                                           request->system() + "'"));
}

void CoordinatorServiceImpl::SourcesToStatus(v1::GetStatusResponse* response) {
  for (StripeSource* source : sources_.all()) {
    const std::optional<SourceStatus> status = source->Overview();
    if (!status) continue;
    v1::SourceStatus* const proto = response->add_sources();
    proto->set_system(source->system());
    *proto->mutable_facts() = SourceFactsToProto(status->facts);
    proto->set_nodes(status->nodes);
    proto->set_blocks(status->blocks);
    if (status->degraded) proto->set_degraded_groups(*status->degraded);
    if (status->lost) proto->set_lost_groups(*status->lost);
  }
}

void CoordinatorServiceImpl::SystemNodeToStatus(const NodeView& view,
                                                v1::GetStatusResponse::Node* proto) {
  StripeSource* const source = sources_.OfNode(view.record);
  if (source == nullptr) return;
  const SystemNode node = source->NodeOf(view);
  proto->set_system(source->system());
  proto->set_reported_blocks(node.reported_blocks);
  proto->set_state_in_system(node.state);
  proto->set_silent_in_system_seconds(node.silent_seconds);
}

}  // namespace ecpipe
