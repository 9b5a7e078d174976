// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "coordinator/repairs/helper_gateway.h"
#include "helper/sessions/session_manager.h"
#include "helper/sessions/whole_blocks.h"
#include "model/plan/features.h"
#include "sim/data_plane.h"
#include "sim/disk.h"

namespace ecpipe::sim {

inline constexpr char kCoordinatorNode[] = "coordinator";

// One life of a helper daemon: the real sessions over a simulated disk, data port and tie to the
// coordinator.
class HelperHost : public DataHost {
 public:
  struct Options {
    uint64_t incarnation = 0;
    Features features = OwnFeatures();
    uint32_t max_sessions = 64;
  };
  HelperHost(const std::string& node, const Options& options, Disk* disk, Network* network,
             Checks* checks);
  // Ends what runs here; on a fibre.
  ~HelperHost() override;

  // The process is gone, at this instant. The object is destroyed later.
  void Crash();

  // What the daemon's service offers; on a fibre of this host.
  absl::Status StartPart(const RepairPart& part);
  void EndParts(RepairId repair_id, uint32_t attempt, bool keep);
  absl::StatusOr<PartProgress> Progress(RepairId repair_id, uint32_t attempt) {
    return sessions_->Progress(repair_id, attempt);
  }

  HelperGateway::FoundBlocks FindBlocks(const std::vector<std::string>& block_ids);

  absl::StatusOr<WholeBlock> CheckBlock(const std::string& block_id) {
    return whole_blocks_.Check(block_id, [this] { return !alive(); });
  }

  DataPort* data_port() override { return &port_; }
  void SetMaxSessions(uint32_t most) { sessions_->SetMaxSessions(most); }
  SessionCounts counts() { return sessions_->counts(); }
  size_t unsent_reports() const { return reports_.size(); }

 private:
  // What a part's streams and disk will have carried when it has ended well.
  struct Expected {
    PartTraffic traffic;
    uint64_t outputs = 0;
  };
  static Expected ExpectedOf(const RepairPart& part);

  void Note(HistoryEvent::Kind kind, RepairId repair_id, uint32_t attempt);
  void KeepInTouch();
  bool Register();
  bool Heartbeat();
  bool SendReports();
  void OnEnd(const PartReport& report);

  const Options options_;
  Network* const network_;
  Checks* const checks_;
  DataPort port_;
  SimTransport transport_;
  DiskStore store_;
  WholeBlocks whole_blocks_{&store_};
  std::map<std::pair<RepairId, uint32_t>, Expected> expected_;
  std::deque<PartReport> reports_;
  uint64_t agent_ = 0;  // the fibre that keeps in touch
  std::unique_ptr<SessionManager> sessions_;
};

}  // namespace ecpipe::sim
