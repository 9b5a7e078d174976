// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "base/status.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

// A coordinator whose answers to requestors a test gives. It is asked from several threads.
class FakeCoordinator : public CoordinatorApi {
 public:
  std::function<absl::StatusOr<RepairGrant>(const RepairTarget& target)> begin;
  std::function<absl::StatusOr<RepairGrant>(const ResumePoint& failed)> resume =
      [](const ResumePoint&) { return NotFaked(); };
  std::function<absl::StatusOr<ProgressAdvice>(const std::stop_token& stop)> check =
      [](const std::stop_token&) { return ProgressAdvice{}; };
  std::function<absl::Status(const RepairVerdict& verdict, const std::stop_token& stop)> finish =
      [](const RepairVerdict&, const std::stop_token&) { return absl::OkStatus(); };

  std::vector<StripeFacts::Source> corrupt;  // what FinishRepair returns

  absl::StatusOr<RepairGrant> BeginRepair(const RepairTarget& target,
                                          const std::vector<std::string>&, const std::string&,
                                          const std::stop_token&) override {
    return begin(target);
  }
  absl::StatusOr<RepairGrant> ResumeRepair(const RepairTarget&, const std::string&,
                                           const ResumePoint& failed,
                                           const std::stop_token&) override {
    return resume(failed);
  }
  absl::StatusOr<ProgressAdvice> CheckProgress(RepairId, uint32_t, uint64_t, bool,
                                               const std::stop_token& stop) override {
    return check(stop);
  }
  absl::StatusOr<std::vector<StripeFacts::Source>> FinishRepair(
      RepairId, uint32_t, const RepairVerdict& verdict, const std::stop_token& stop) override {
    ECPIPE_RETURN_IF_ERROR(finish(verdict, stop));
    return corrupt;
  }
  absl::StatusOr<RepairRecord> Repair(RepairId, const std::stop_token&) override {
    return NotFaked();
  }
  absl::StatusOr<ExplainedRepair> Explain(const RepairTarget&, const std::vector<std::string>&,
                                          const std::string&) override {
    return NotFaked();
  }
  absl::StatusOr<std::vector<SchemeInfo>> Schemes() override { return NotFaked(); }
  absl::Status PutStripes(const std::vector<Stripe>&, const ProgressFn&) override {
    return NotFaked();
  }
  absl::StatusOr<ListedStripes> ListStripes(const std::string&, uint32_t) override {
    return NotFaked();
  }
  absl::StatusOr<BlockLocation> LocateBlock(const std::string&) override { return NotFaked(); }
  absl::StatusOr<uint64_t> BeginRecovery(const RecoveryRequest&, IfLive) override {
    return NotFaked();
  }
  absl::Status ChangeRecovery(uint64_t, RecoveryChange) override { return NotFaked(); }
  absl::StatusOr<std::vector<RecoveryView>> Recoveries(uint64_t) override { return NotFaked(); }
  absl::StatusOr<ProbeReport> ProbeLinks(const std::vector<std::pair<std::string, std::string>>&,
                                         uint64_t, ProbeKind) override {
    return NotFaked();
  }
  absl::StatusOr<std::vector<LinkSpeed>> Links() override { return NotFaked(); }
  absl::StatusOr<std::optional<NodeLoss>> LossOf(const std::string&) override { return NotFaked(); }
  absl::StatusOr<ClusterLimitsView> Limits() override { return NotFaked(); }
  absl::Status SetLimits(const LimitsChange&) override { return NotFaked(); }
  absl::StatusOr<std::vector<CorruptBlockStatus>> CorruptBlocks() override { return NotFaked(); }
  absl::Status ClearCorruptBlock(const std::string&) override { return NotFaked(); }
  absl::Status CheckCorruptBlock(const std::string&) override { return NotFaked(); }
  absl::StatusOr<ClusterStatus> Status() override { return NotFaked(); }

 private:
  static absl::Status NotFaked() { return absl::UnimplementedError("not faked"); }
};

}  // namespace ecpipe
