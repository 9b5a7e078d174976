// SPDX-License-Identifier: Apache-2.0
// CoordinatorService: the marks of corrupt and suspect blocks.
#include "base/process/log.h"
#include "coordinator/edge/coordinator_service.h"
#include "rpc/rpc_status.h"

namespace ecpipe {

void CoordinatorServiceImpl::MarksToProto(
    google::protobuf::RepeatedPtrField<v1::CorruptBlock>* protos) {
  for (const CorruptBlock& block : repairs_->corrupt().All()) {
    v1::CorruptBlock* added = protos->Add();
    added->set_block_id(block.block_id);
    added->set_node_id(block.node);
    added->set_reason(block.reason);
    added->set_found_unix_ms(block.found_unix_ms);
    added->set_suspect(block.suspect);
    added->set_undecided(block.undecided);
    added->set_checks(block.checks);
    if (const StripeSource* source = sources_.OfBlock(block.block_id)) {
      added->set_system(source->system());
    }
  }
}

grpc::Status CoordinatorServiceImpl::ListCorruptBlocks(grpc::ServerContext*,
                                                       const v1::ListCorruptBlocksRequest*,
                                                       v1::ListCorruptBlocksResponse* response) {
  MarksToProto(response->mutable_blocks());
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ClearCorruptBlock(grpc::ServerContext*,
                                                       const v1::ClearCorruptBlockRequest* request,
                                                       v1::ClearCorruptBlockResponse*) {
  const std::string block_id = sources_.BlockNamed(request->block_id());
  if (!repairs_->corrupt().Forget(block_id)) {
    return ToGrpc(absl::NotFoundError("block " + block_id + " is not marked"));
  }
  Log(LogLevel::kWarning, "block.cleared", {{"block", block_id}, {"reason", "an operator's word"}});
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::CheckCorruptBlock(grpc::ServerContext*,
                                                       const v1::CheckCorruptBlockRequest* request,
                                                       v1::CheckCorruptBlockResponse*) {
  return ToGrpc(checker_->CheckSoon(sources_.BlockNamed(request->block_id())));
}

}  // namespace ecpipe
