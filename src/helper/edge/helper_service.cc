// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/helper_service.h"

#include <algorithm>

#include "base/bytes/utf8_text.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "base/process/process_stats.h"
#include "base/process/version.h"
#include "base/status.h"
#include "rpc/convert/block_file_proto.h"
#include "rpc/convert/part_proto.h"
#include "rpc/convert/progress_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr int kMaxBlocksNamed = 1000;  // in one question
// For all blocks of a question: one on a directory that hangs takes a second. Who asks waits twice
// as long as this.
constexpr Duration kAnswerWithin = std::chrono::seconds(1);

absl::Status CheckCount(int blocks) {
  if (blocks <= kMaxBlocksNamed) return absl::OkStatus();
  return absl::InvalidArgumentError("a question names at most " + std::to_string(kMaxBlocksNamed) +
                                    " blocks");
}

absl::Status CheckNode(const std::string& asked, const std::string& node_id) {
  if (asked.empty() || asked == node_id) return absl::OkStatus();
  return absl::FailedPreconditionError("this is node " + node_id + ", not " + asked);
}

}  // namespace

grpc::Status HelperServiceImpl::StartPart(grpc::ServerContext*, const v1::StartPartRequest* request,
                                          v1::StartPartResponse* response) {
  absl::StatusOr<RepairPart> part = PartFromProto(request->part());
  if (!part.ok()) return ToGrpc(part.status());
  const absl::StatusOr<std::optional<ChecksumKind>> checksum = sessions_->Start(*std::move(part));
  if (!checksum.ok()) return ToGrpc(checksum.status());
  if (checksum->has_value()) *response->mutable_checksum() = ChecksumToProto(**checksum);
  on_start_();
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::CancelRepair(grpc::ServerContext*,
                                             const v1::CancelRepairRequest* request,
                                             v1::CancelRepairResponse* response) {
  const RepairId repair_id = request->repair_id();
  response->set_cancelled_parts(request->keep()
                                    ? sessions_->CancelAndKeep(repair_id, request->attempt())
                                    : sessions_->Cancel(repair_id, request->attempt()));
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::GetPart(grpc::ServerContext*, const v1::GetPartRequest* request,
                                        v1::PartProgress* response) {
  const absl::StatusOr<PartProgress> progress =
      sessions_->Progress(request->repair_id(), request->attempt());
  if (!progress.ok()) return ToGrpc(progress.status());
  *response = ProgressToProto(*progress);
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::CheckBlock(grpc::ServerContext* context,
                                           const v1::CheckBlockRequest* request,
                                           v1::CheckBlockResponse* response) {
  const absl::StatusOr<WholeBlock> block =
      whole_blocks_.Check(request->block_id(), [context] { return context->IsCancelled(); });
  if (!block.ok()) return ToGrpc(block.status());
  response->set_bytes(block->bytes);
  response->set_sha256(block->sha256);
  response->set_has_checksums(block->has_checksums);
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::GetHelperStatus(grpc::ServerContext*,
                                                const v1::GetHelperStatusRequest*,
                                                v1::HelperStatus* response) {
  const SessionCounts counts = sessions_->counts();
  response->set_node_id(node_id_);
  response->set_active_sessions(counts.active_sessions);
  response->set_buffer_bytes(counts.buffer_bytes);
  response->set_data_bytes_sent(counts.traffic.bytes_sent);
  response->set_data_bytes_received(counts.traffic.bytes_received);
  response->set_block_bytes_read(counts.traffic.block_bytes_read);
  response->set_parts_done(counts.parts_done);
  response->set_parts_failed(counts.parts_failed);
  response->set_cpu_seconds(ProcessCpuSeconds());
  response->set_peak_resident_bytes(PeakResidentBytes());
  response->set_draining(sessions_->draining());
  response->set_kept_parts(counts.kept_parts);
  response->set_version(Version());
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::FindBlocks(grpc::ServerContext*,
                                           const v1::FindBlocksRequest* request,
                                           v1::FindBlocksResponse* response) {
  absl::Status may = CheckCount(request->block_ids_size());
  if (may.ok()) may = CheckNode(request->node_id(), node_id_);
  if (!may.ok()) return ToGrpc(may);
  const TimePoint enough = Clock::System().Now() + kAnswerWithin;
  for (const std::string& block_id : request->block_ids()) {
    v1::FindBlocksResponse::Block* const answer = response->add_blocks();
    const absl::StatusOr<std::unique_ptr<BlockReader>> opened = store_->Open(block_id);
    if (opened.ok()) {
      answer->set_bytes((*opened)->bytes());
      answer->set_sha256((*opened)->stored_sha256());
    } else {
      answer->set_status_code(static_cast<int>(opened.status().code()));
      answer->set_status_message(CleanText(std::string(opened.status().message())));
    }
    if (Clock::System().Now() >= enough) break;
  }
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::ListBlockFiles(grpc::ServerContext*,
                                               const v1::ListBlockFilesRequest* request,
                                               v1::ListBlockFilesResponse* response) {
  const size_t most =
      request->most() == 0 ? kMaxBlocksNamed : std::min<size_t>(request->most(), kMaxBlocksNamed);
  const absl::Status may = CheckNode(request->node_id(), node_id_);
  if (!may.ok()) return ToGrpc(may);
  const absl::StatusOr<std::vector<BlockFile>> files = store_->ListFiles(request->after(), most);
  if (!files.ok()) return ToGrpc(files.status());
  for (const BlockFile& file : *files) *response->add_files() = BlockFileToProto(file);
  response->set_more(files->size() >= most);
  return grpc::Status::OK;
}

grpc::Status HelperServiceImpl::RemoveBlockFiles(grpc::ServerContext* context,
                                                 const v1::RemoveBlockFilesRequest* request,
                                                 v1::RemoveBlockFilesResponse* response) {
  absl::Status may = CheckCount(request->files_size());
  if (may.ok()) may = CheckNode(request->node_id(), node_id_);
  if (!may.ok()) return ToGrpc(may);
  const TimePoint enough = Clock::System().Now() + kAnswerWithin;
  for (const v1::BlockFile& file : request->files()) {
    // This process may have stood still meanwhile.
    if (context->IsCancelled() || std::chrono::system_clock::now() >= context->deadline()) break;
    const absl::Status removed = store_->Remove(BlockFileFromProto(file));
    Log(LogLevel::kInfo, "block.removed",
        {{"block", file.block_id()},
         {"bytes", std::to_string(file.bytes())},
         {"status", removed.ok() ? "OK" : StatusText(removed)}});
    v1::RemoveBlockFilesResponse::Removal* const answer = response->add_removals();
    answer->set_status_code(static_cast<int>(removed.code()));
    answer->set_status_message(CleanText(std::string(removed.message())));
    if (Clock::System().Now() >= enough) break;
  }
  return grpc::Status::OK;
}

}  // namespace ecpipe
