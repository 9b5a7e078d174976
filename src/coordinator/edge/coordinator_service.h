// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "base/bytes/shared_room.h"
#include "coordinator/edge/address_rule.h"
#include "coordinator/recovery/recovery_manager.h"
#include "coordinator/repairs/link_prober.h"
#include "coordinator/repairs/repair_coordinator.h"
#include "coordinator/sources/stripe_source.h"
#include "coordinator/store/catalog.h"
#include "coordinator/store/journal.h"
#include "coordinator/store/limit_book.h"
#include "coordinator/upkeep/block_checker.h"
#include "coordinator/upkeep/extra_copies.h"
#include "ecpipe/v1/coordinator.grpc.pb.h"
#include "model/block_report.h"

namespace ecpipe {

// The coordinator's gRPC face: checks and translates; RepairCoordinator and Catalog decide.
class CoordinatorServiceImpl final : public v1::CoordinatorService::Service {
 public:
  // The limits that hold unless LimitBook has others.
  struct DefaultLimits {
    double cluster_rate = 0;  // bytes per second; 0: none
    uint32_t max_running = 0;
  };

  struct Transports {
    TransportKind chosen = TransportKind::kTcp;  // where a request names none
    // Plain text on its way and in the server: not where TLS protects everything else, unless the
    // operator says that the network is private.
    bool redis_allowed = true;
  };

  // All outlive the service.
  CoordinatorServiceImpl(RepairCoordinator* repairs, RecoveryManager* recoveries,
                         LinkProber* prober, Catalog* catalog, StripeSources sources,
                         Journal* journal, LimitBook* limits, BlockChecker* checker,
                         HelperGateway* helpers, ExtraCopies* extra_copies,
                         const DefaultLimits& defaults, const Transports& transports,
                         AddressRule addresses, std::string data_directory)
      : repairs_(repairs),
        recoveries_(recoveries),
        prober_(prober),
        catalog_(catalog),
        sources_(std::move(sources)),
        journal_(journal),
        limits_(limits),
        checker_(checker),
        helpers_(helpers),
        extra_copies_(extra_copies),
        defaults_(defaults),
        transports_(transports),
        addresses_(std::move(addresses)),
        data_directory_(std::move(data_directory)) {}

  // Of helpers that register from now on.
  void SetAddresses(AddressRule addresses);

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override;
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override;
  grpc::Status ReportPart(grpc::ServerContext*, const v1::ReportPartRequest* request,
                          v1::ReportPartResponse* response) override;
  grpc::Status ReportBlocks(grpc::ServerContext* context,
                            grpc::ServerReader<v1::ReportBlocksRequest>* pieces,
                            v1::ReportBlocksResponse* response) override;
  grpc::Status BeginRepair(grpc::ServerContext*, const v1::BeginRepairRequest* request,
                           v1::BeginRepairResponse* response) override;
  grpc::Status CheckProgress(grpc::ServerContext* context, const v1::CheckProgressRequest* request,
                             v1::CheckProgressResponse* response) override;
  grpc::Status FinishRepair(grpc::ServerContext*, const v1::FinishRepairRequest* request,
                            v1::FinishRepairResponse* response) override;
  grpc::Status GetRepair(grpc::ServerContext*, const v1::GetRepairRequest* request,
                         v1::GetRepairResponse* response) override;
  grpc::Status ExplainRepair(grpc::ServerContext*, const v1::ExplainRepairRequest* request,
                             v1::ExplainRepairResponse* response) override;
  grpc::Status ListSchemes(grpc::ServerContext*, const v1::ListSchemesRequest* request,
                           v1::ListSchemesResponse* response) override;
  grpc::Status PutStripes(grpc::ServerContext*, const v1::PutStripesRequest* request,
                          v1::PutStripesResponse* response) override;
  grpc::Status ListStripes(grpc::ServerContext*, const v1::ListStripesRequest* request,
                           v1::ListStripesResponse* response) override;
  grpc::Status LocateBlock(grpc::ServerContext*, const v1::LocateBlockRequest* request,
                           v1::LocateBlockResponse* response) override;
  grpc::Status BeginRecovery(grpc::ServerContext*, const v1::BeginRecoveryRequest* request,
                             v1::BeginRecoveryResponse* response) override;
  grpc::Status ChangeRecovery(grpc::ServerContext*, const v1::ChangeRecoveryRequest* request,
                              v1::ChangeRecoveryResponse* response) override;
  grpc::Status ListRecoveries(grpc::ServerContext*, const v1::ListRecoveriesRequest* request,
                              v1::ListRecoveriesResponse* response) override;
  grpc::Status DrainNode(grpc::ServerContext*, const v1::DrainNodeRequest* request,
                         v1::DrainNodeResponse* response) override;
  grpc::Status MaintainNode(grpc::ServerContext*, const v1::MaintainNodeRequest* request,
                            v1::MaintainNodeResponse* response) override;
  grpc::Status ReadmitNode(grpc::ServerContext*, const v1::ReadmitNodeRequest* request,
                           v1::ReadmitNodeResponse* response) override;
  grpc::Status GetNodeLoss(grpc::ServerContext*, const v1::GetNodeLossRequest* request,
                           v1::GetNodeLossResponse* response) override;
  grpc::Status GetFile(grpc::ServerContext*, const v1::GetFileRequest* request,
                       v1::GetFileResponse* response) override;
  grpc::Status ProbeLinks(grpc::ServerContext*, const v1::ProbeLinksRequest* request,
                          v1::ProbeLinksResponse* response) override;
  grpc::Status ListLinks(grpc::ServerContext*, const v1::ListLinksRequest* request,
                         v1::ListLinksResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override;
  grpc::Status GetLimits(grpc::ServerContext*, const v1::GetLimitsRequest* request,
                         v1::GetLimitsResponse* response) override;
  grpc::Status SetLimits(grpc::ServerContext*, const v1::SetLimitsRequest* request,
                         v1::SetLimitsResponse* response) override;
  // In catalog_service.cc.
  grpc::Status ListNodeBlocks(grpc::ServerContext*, const v1::ListNodeBlocksRequest* request,
                              v1::ListNodeBlocksResponse* response) override;
  grpc::Status CheckBlocks(grpc::ServerContext*, const v1::CheckBlocksRequest* request,
                           v1::CheckBlocksResponse* response) override;
  grpc::Status RemoveStripes(grpc::ServerContext* context, const v1::RemoveStripesRequest* request,
                             v1::RemoveStripesResponse* response) override;
  grpc::Status ForgetNode(grpc::ServerContext* context, const v1::ForgetNodeRequest* request,
                          v1::ForgetNodeResponse* response) override;
  grpc::Status ListExtraCopies(grpc::ServerContext*, const v1::ListExtraCopiesRequest* request,
                               v1::ListExtraCopiesResponse* response) override;
  grpc::Status RemoveExtraCopies(grpc::ServerContext* context,
                                 const v1::RemoveExtraCopiesRequest* request,
                                 v1::RemoveExtraCopiesResponse* response) override;
  // In dry_run_service.cc.
  grpc::Status DryRun(grpc::ServerContext*, const v1::DryRunRequest* request,
                      v1::DryRunResponse* response) override;
  // In marks_service.cc.
  grpc::Status ListCorruptBlocks(grpc::ServerContext*, const v1::ListCorruptBlocksRequest* request,
                                 v1::ListCorruptBlocksResponse* response) override;
  grpc::Status ClearCorruptBlock(grpc::ServerContext*, const v1::ClearCorruptBlockRequest* request,
                                 v1::ClearCorruptBlockResponse* response) override;
  grpc::Status CheckCorruptBlock(grpc::ServerContext*, const v1::CheckCorruptBlockRequest* request,
                                 v1::CheckCorruptBlockResponse* response) override;
  // In backup_service.cc.
  grpc::Status Backup(grpc::ServerContext* context, const v1::BackupRequest* request,
                      grpc::ServerWriter<v1::BackupPiece>* pieces) override;

 private:
  absl::StatusOr<RepairRequest> RequestOf(const v1::RepairTarget& target,
                                          const std::string& requestor);
  absl::Status CheckTransport(TransportKind transport) const;

  // In sources_service.cc. Fills in the facts of a stripe that a storage system knows; `claim` is
  // that of the request.
  absl::Status FindFacts(const std::string& claim, RepairRequest* request);
  void SourcesToStatus(v1::GetStatusResponse* response);
  // Of a node that belongs to a storage system; nothing otherwise.
  void SystemNodeToStatus(const NodeView& view, v1::GetStatusResponse::Node* proto);

  // In recovery_service.cc.
  absl::StatusOr<RecoveryRequest> RecoveryRequestOf(const v1::RecoveryRequest& request,
                                                    RecoveryKind kind) const;
  static IfLive IfLiveOf(const v1::BeginRecoveryRequest& request);

  // In catalog_service.cc. What a request asks for, checked.
  absl::StatusOr<std::vector<Stripe>> StripesToPut(const v1::PutStripesRequest& request);
  // Has their holders read blocks, and removes copies of those that are good there. `gone`: nobody
  // waits for it any more.
  absl::StatusOr<std::vector<ExtraCopy>> RemoveGoodCopies(const std::string& node,
                                                          const std::vector<BlockFile>& files,
                                                          const std::function<bool()>& gone);
  // FAILED_PRECONDITION: a repair of one of them runs, or a recovery does. Of stripes that are as
  // the catalog has them nothing is asked.
  absl::Status CheckMayReplace(const std::vector<Stripe>& stripes);
  // FAILED_PRECONDITION: one of these blocks is of one of the stripes.
  static absl::Status CheckNotRepaired(const std::vector<Stripe>& stripes,
                                       const std::set<std::string>& repairing);
  void ForgetMarksOfChanged(const std::vector<Stripe>& were, const std::vector<Stripe>& stripes);
  static absl::StatusOr<std::vector<std::string>> StripesToRemove(
      const v1::RemoveStripesRequest& request);
  // FAILED_PRECONDITION: a repair or a recovery uses one of them.
  absl::Status CheckMayRemove(const std::vector<std::string>& stripes);
  // If they may be removed. Returns them as they were.
  absl::StatusOr<std::vector<Stripe>> Remove(const std::vector<std::string>& stripes);
  // How many blocks the catalog has on a node, in words.
  absl::StatusOr<std::string> BlocksOn(const std::string& node);
  absl::Status CheckMayForget(const v1::ForgetNodeRequest& request);

  // In dry_run_service.cc. Sentences for people, or the error of the call.
  using Effects = absl::StatusOr<std::vector<std::string>>;
  Effects WouldRecover(const v1::BeginRecoveryRequest& request);
  Effects WouldDrain(const v1::DrainNodeRequest& request);
  Effects WouldMaintain(const v1::MaintainNodeRequest& request);
  Effects WouldReadmit(const v1::ReadmitNodeRequest& request);
  Effects WouldChange(const v1::ChangeRecoveryRequest& request);
  Effects WouldSetLimits(const v1::SetLimitsRequest& request);
  Effects WouldClear(const v1::ClearCorruptBlockRequest& request);
  Effects WouldRemove(const v1::RemoveStripesRequest& request);
  Effects WouldForget(const v1::ForgetNodeRequest& request);

  // In marks_service.cc.
  void MarksToProto(google::protobuf::RepeatedPtrField<v1::CorruptBlock>* protos);

  AddressRule Addresses();
  // In limits_service.cc.
  v1::HelperLimits LimitsFor(const std::string& node);
  // The limits that the request leads to.
  absl::StatusOr<LimitsOfCluster> ClusterLimitsAfter(const v1::SetLimitsRequest& request);
  absl::StatusOr<LimitsOfNode> NodeLimitsAfter(const v1::SetLimitsRequest& request);
  absl::Status SetClusterLimits(const v1::SetLimitsRequest& request);
  absl::Status SetNodeLimits(const v1::SetLimitsRequest& request);

  RepairCoordinator* const repairs_;
  RecoveryManager* const recoveries_;
  LinkProber* const prober_;
  Catalog* const catalog_;
  const StripeSources sources_;
  Journal* const journal_;
  LimitBook* const limits_;
  BlockChecker* const checker_;
  HelperGateway* const helpers_;
  ExtraCopies* const extra_copies_;
  const DefaultLimits defaults_;
  const Transports transports_;
  Mutex addresses_mutex_;
  AddressRule addresses_ ABSL_GUARDED_BY(addresses_mutex_);
  const std::string data_directory_;
  // Blocks in reports that are under way: up to 112 bytes each until they are taken up.
  SharedRoom report_room_{BlockReport::kMaxBlocks};
  std::atomic<bool> backing_up_{false};
  // Held while an operator changes where blocks are, with the look whether that may be, or removes
  // copies by where the others are.
  Mutex places_mutex_;
  CodeCache codes_;
};

// As the helper tells them.
inline std::vector<std::string> FailedRootsOf(const v1::Inventory& inventory) {
  return {inventory.failed_roots().begin(), inventory.failed_roots().end()};
}
inline std::optional<uint64_t> FreeBytesOf(const v1::Inventory& inventory) {
  if (!inventory.has_free_bytes()) return std::nullopt;
  return inventory.free_bytes();
}
inline std::optional<uint64_t> DiskBytesOf(const v1::Inventory& inventory) {
  if (!inventory.has_disk_bytes()) return std::nullopt;
  return inventory.disk_bytes();
}

}  // namespace ecpipe
