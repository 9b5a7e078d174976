// SPDX-License-Identifier: Apache-2.0
#include "sim/requestor_host.h"

#include "base/status.h"
#include "model/corrupt_block.h"
#include "sim/coordinator_host.h"
#include "sim/helper_host.h"

namespace ecpipe::sim {
namespace {

constexpr Duration kRequestTimeout = std::chrono::seconds(15);

constexpr Duration kCheckProgressTimeout = std::chrono::milliseconds(1500);

absl::Status NotSimulated() { return absl::UnimplementedError("not simulated"); }

RepairRequest RequestOf(const RepairTarget& target, const std::vector<std::string>& to,
                        const std::string& requestor) {
  RepairRequest request;
  request.block_ids = target.block_ids;
  request.offset = target.offset;
  request.bytes = target.bytes;
  request.scheme = target.scheme;
  request.slice_bytes = target.slice_bytes;
  request.requestor = requestor;
  request.prefer_direct = target.prefer_direct;
  if (!target.verify.empty()) request.verify = *VerificationNamed(target.verify);
  request.hosts = to;
  return request;
}

void TellOfCorruption(RepairCoordinator* repairs, RepairId repair_id, const absl::Status& status) {
  const std::string block_id = CorruptBlockOf(status);
  if (block_id.empty()) return;
  repairs->ReportCorrupt("", repair_id, block_id, std::string(status.message()));
}

}  // namespace

// Does what coordinator_service.cc and the requestor's coordinator_client.cc do with protobufs.
class RequestorHost::Api : public CoordinatorApi {
 public:
  Api(Network* network, const Host* host, Checks* checks)
      : network_(network), host_(host), checks_(checks) {}

  absl::StatusOr<RepairGrant> BeginRepair(const RepairTarget& target,
                                          const std::vector<std::string>& to,
                                          const std::string& requestor,
                                          const std::stop_token&) override {
    return network_->Call<RepairGrant>(
        *host_, kCoordinatorNode, kRequestTimeout,
        [request = RequestOf(target, to, requestor),
         checks = checks_](Host* host) -> absl::StatusOr<RepairGrant> {
          RepairCoordinator& repairs = static_cast<CoordinatorHost*>(host)->repairs();
          absl::StatusOr<RepairGrant> grant = repairs.BeginRepair(request);
          checks->Expect(!grant.ok() || static_cast<CoordinatorHost*>(host)->WithinLimit(),
                         "the coordinator runs more repairs than its limit");
          return grant;
        });
  }

  absl::StatusOr<RepairGrant> ResumeRepair(const RepairTarget& target, const std::string& requestor,
                                           const ResumePoint& from,
                                           const std::stop_token&) override {
    return network_->Call<RepairGrant>(*host_, kCoordinatorNode, kRequestTimeout,
                                       [from, request = RequestOf(target, {}, requestor)](
                                           Host* host) -> absl::StatusOr<RepairGrant> {
                                         RepairCoordinator& repairs =
                                             static_cast<CoordinatorHost*>(host)->repairs();
                                         TellOfCorruption(&repairs, from.repair_id, from.failure);
                                         return repairs.ResumeRepair(request, from);
                                       });
  }

  absl::StatusOr<ProgressAdvice> CheckProgress(RepairId repair_id, uint32_t attempt,
                                               uint64_t missing_bytes, bool quiet,
                                               const std::stop_token&) override {
    return network_->Call<ProgressAdvice>(
        *host_, kCoordinatorNode, kCheckProgressTimeout, [=](Host* host) {
          return static_cast<CoordinatorHost*>(host)->repairs().CheckProgress(repair_id, attempt,
                                                                              missing_bytes, quiet);
        });
  }

  absl::StatusOr<std::vector<StripeFacts::Source>> FinishRepair(RepairId repair_id, uint32_t,
                                                                const RepairVerdict& verdict,
                                                                const std::stop_token&) override {
    using Sources = std::vector<StripeFacts::Source>;
    return network_->Call<Sources>(
        *host_, kCoordinatorNode, kRequestTimeout, [=](Host* host) -> absl::StatusOr<Sources> {
          RepairCoordinator& repairs = static_cast<CoordinatorHost*>(host)->repairs();
          TellOfCorruption(&repairs, repair_id, verdict.status);
          Sources corrupt = repairs.CorruptSources(repair_id);
          repairs.FinishRepair(repair_id, verdict);
          return corrupt;
        });
  }

  absl::StatusOr<RepairRecord> Repair(RepairId repair_id, const std::stop_token&) override {
    return network_->Call<RepairRecord>(
        *host_, kCoordinatorNode, kRequestTimeout, [repair_id](Host* host) {
          return static_cast<CoordinatorHost*>(host)->repairs().Find(repair_id);
        });
  }

  absl::StatusOr<ExplainedRepair> Explain(const RepairTarget&, const std::vector<std::string>&,
                                          const std::string&) override {
    return NotSimulated();
  }
  absl::StatusOr<std::vector<SchemeInfo>> Schemes() override { return NotSimulated(); }
  absl::Status PutStripes(const std::vector<Stripe>&, const ProgressFn&) override {
    return NotSimulated();
  }
  absl::StatusOr<ListedStripes> ListStripes(const std::string&, uint32_t) override {
    return NotSimulated();
  }
  absl::StatusOr<BlockLocation> LocateBlock(const std::string&) override { return NotSimulated(); }
  absl::StatusOr<uint64_t> BeginRecovery(const RecoveryRequest&, IfLive) override {
    return NotSimulated();
  }
  absl::Status ChangeRecovery(uint64_t, RecoveryChange) override { return NotSimulated(); }
  absl::StatusOr<std::vector<RecoveryView>> Recoveries(uint64_t) override { return NotSimulated(); }
  absl::StatusOr<ProbeReport> ProbeLinks(const std::vector<std::pair<std::string, std::string>>&,
                                         uint64_t, ProbeKind) override {
    return NotSimulated();
  }
  absl::StatusOr<std::vector<LinkSpeed>> Links() override { return NotSimulated(); }
  absl::StatusOr<std::optional<NodeLoss>> LossOf(const std::string&) override {
    return NotSimulated();
  }
  absl::StatusOr<ClusterLimitsView> Limits() override { return NotSimulated(); }
  absl::Status SetLimits(const LimitsChange&) override { return NotSimulated(); }
  absl::StatusOr<std::vector<CorruptBlockStatus>> CorruptBlocks() override {
    return NotSimulated();
  }
  absl::Status ClearCorruptBlock(const std::string&) override { return NotSimulated(); }
  absl::Status CheckCorruptBlock(const std::string&) override { return NotSimulated(); }
  absl::StatusOr<ClusterStatus> Status() override { return NotSimulated(); }

 private:
  Network* const network_;
  const Host* const host_;
  Checks* const checks_;
};

RequestorHost::RequestorHost(const std::string& node, Network* network, Checks* checks)
    : Host(node, std::make_shared<Process>(Process{node})), checks_(checks) {
  auto transport = std::make_unique<SimTransport>(network, this, nullptr);
  transport_ = transport.get();
  requestor_ = std::make_unique<Requestor>(std::make_unique<Api>(network, this, checks),
                                           RequestorOptions{.name = node}, std::move(transport));
}

RequestorHost::~RequestorHost() = default;

absl::Status RequestorHost::Read(const RepairTarget& target) {
  const uint64_t block_bytes = checks_->Truth(target.block_ids[0]).size();
  const uint64_t wanted = target.bytes == 0 ? block_bytes - target.offset : target.bytes;
  uint64_t got = 0;
  const auto take = [&](std::span<const std::span<const uint8_t>> pieces) -> absl::Status {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const std::string& block_id = target.block_ids[i];
      checks_->Expect(got + pieces[i].size() <= wanted, "more bytes than asked for of " + block_id);
      checks_->Expect(checks_->Right(block_id, target.offset + got, pieces[i]),
                      "wrong bytes of block " + block_id + " were handed over, from " +
                          std::to_string(target.offset + got) + " on");
    }
    checks_->Note({.kind = HistoryEvent::Kind::kHandedOver,
                   .reader = node(),
                   .offset = target.offset + got,
                   .bytes = pieces[0].size()});
    got += pieces[0].size();
    return absl::OkStatus();
  };
  const absl::StatusOr<RepairReport> report = requestor_->ReadSeveral(target, take);
  if (!report.ok()) return report.status();
  checks_->Expect(got == wanted && report->bytes == wanted * target.block_ids.size(),
                  "a read of block " + target.block_ids[0] + " ended well and brought " +
                      std::to_string(got) + " of " + std::to_string(wanted) + " bytes");
  return absl::OkStatus();
}

absl::Status RequestorHost::RepairToNodes(const RepairTarget& target,
                                          const std::vector<std::string>& nodes) {
  return requestor_->RepairToNodes(target, nodes).status();
}

void RequestorHost::Crash() {
  process()->alive = false;
  transport_->Break();
  requestor_->Cancel();
}

}  // namespace ecpipe::sim
