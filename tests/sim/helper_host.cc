// SPDX-License-Identifier: Apache-2.0
#include "sim/helper_host.h"

#include "base/status.h"
#include "model/corrupt_block.h"
#include "sim/coordinator_host.h"

namespace ecpipe::sim {
namespace {

// As in the daemon's coordinator_client.cc.
constexpr Duration kCallTimeout = std::chrono::seconds(2);
constexpr Duration kRetryInterval = std::chrono::milliseconds(500);
constexpr Duration kHeartbeatInterval = std::chrono::seconds(1);

uint64_t PayloadBytes(const RepairPart& part, const LaneSlices& slices) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < slices.count(); ++i) bytes += part.grid.SliceBytes(slices.SliceIndex(i));
  return bytes;
}

}  // namespace

HelperHost::HelperHost(const std::string& node, const Options& options, Disk* disk,
                       Network* network, Checks* checks)
    : DataHost(node, std::make_shared<Process>(Process{node})),
      options_(options),
      network_(network),
      checks_(checks),
      port_(network),
      transport_(network, this, &port_),
      store_(disk, process(), network->scheduler(), checks),
      sessions_(std::make_unique<SessionManager>(
          &store_, &transport_, nullptr,
          SessionManager::Options{.max_sessions = options.max_sessions},
          [this](const PartReport& report) { OnEnd(report); })) {
  checks_->Note({.kind = HistoryEvent::Kind::kNodeStarts, .node = node});
  network_->Add(this);
  Pin();
  agent_ = network_->scheduler()->Spawn(process(), [this] {
    KeepInTouch();
    Unpin();
  });
}

HelperHost::~HelperHost() { sessions_.reset(); }

void HelperHost::Crash() {
  process()->alive = false;
  network_->Remove(this);
  port_.Close();
  transport_.Break();
  network_->scheduler()->Wake(agent_);
}

HelperHost::Expected HelperHost::ExpectedOf(const RepairPart& part) {
  Expected expected;
  for (const HopSpec& hop : part.hops) {
    const uint64_t payload = PayloadBytes(part, hop.slices);
    const uint64_t row_bytes = payload + uint64_t{hop.slices.count()} * kFrameHeaderBytes;
    for (const HopInput& input : hop.inputs) {
      expected.traffic.bytes_received += input.rows.size() * row_bytes;
    }
    for (const HopOutput& output : hop.outputs) {
      expected.traffic.bytes_sent += output.rows.size() * row_bytes;
      ++expected.outputs;
    }
    if (hop.block) expected.traffic.block_bytes_read += hop.block->sub_blocks.size() * payload;
  }
  return expected;
}

absl::Status HelperHost::StartPart(const RepairPart& part) {
  ECPIPE_RETURN_IF_ERROR(ValidatePart(part));
  // An older helper would make wrong bytes of it.
  checks_->Expect(part.needs.Without(options_.features).empty(),
                  node() + " was handed a part that needs what its version lacks");
  for (const HopSpec& hop : part.hops) {
    if (hop.block) checks_->WillRead(hop.block->block_id, node());
  }
  store_.SetPart(&part);
  const absl::Status started = sessions_->Start(part).status();
  store_.SetPart(nullptr);
  checks_->Expect(!started.ok() || counts().active_sessions <= sessions_->max_sessions(),
                  node() + " runs more sessions than its limit");
  if (started.ok()) Note(HistoryEvent::Kind::kPartBegins, part.repair_id, part.attempt);
  if (started.ok()) checks_->SawHops(part.hops.size());
  if (started.ok()) expected_[{part.repair_id, part.attempt}] = ExpectedOf(part);
  if (started.ok() && part.attempt > 0 && !part.stores.empty()) {
    network_->scheduler()->Trace(node() + " stores " + part.stores[0].block_id + ", attempt " +
                                 std::to_string(part.attempt));
  }
  return started;
}

void HelperHost::Note(HistoryEvent::Kind kind, RepairId repair_id, uint32_t attempt) {
  if (!alive()) return;
  checks_->Note({.kind = kind, .node = node(), .repair = repair_id, .attempt = attempt});
}

void HelperHost::EndParts(RepairId repair_id, uint32_t attempt, bool keep) {
  if (keep) {
    sessions_->CancelAndKeep(repair_id, attempt);
  } else {
    sessions_->Cancel(repair_id, attempt);
  }
}

HelperGateway::FoundBlocks HelperHost::FindBlocks(const std::vector<std::string>& block_ids) {
  HelperGateway::FoundBlocks found;
  for (const std::string& block_id : block_ids) {
    const absl::StatusOr<std::unique_ptr<BlockReader>> opened = store_.Open(block_id);
    if (opened.ok()) {
      found.emplace_back(HelperGateway::FoundBlock{(*opened)->bytes(), (*opened)->stored_sha256()});
    } else {
      found.emplace_back(opened.status());
    }
  }
  return found;
}

void HelperHost::OnEnd(const PartReport& report) {
  const auto expected = expected_.find({report.repair_id, report.attempt});
  const PartTraffic& planned = expected->second.traffic;
  const PartTraffic& actual = report.traffic;
  const std::string part = "part of repair " + RepairIdText(report.repair_id) + " on " + node();
  network_->scheduler()->Trace(part + " ended: " + StatusText(report.status));
  const bool equal = actual.bytes_sent == planned.bytes_sent &&
                     actual.bytes_received == planned.bytes_received &&
                     actual.block_bytes_read == planned.block_bytes_read;
  if (report.status.ok()) {
    Note(HistoryEvent::Kind::kPartEnds, report.repair_id, report.attempt);
  }
  checks_->Expect(!report.status.ok() || equal, part + " did not move the bytes of its plan");
  checks_->Expect(actual.bytes_sent <= planned.bytes_sent &&
                      actual.block_bytes_read <= planned.block_bytes_read,
                  part + " moved more bytes than its plan has");
  expected_.erase(expected);
  reports_.push_back(report);
  network_->scheduler()->Wake(agent_);
}

void HelperHost::KeepInTouch() {
  Scheduler* const scheduler = network_->scheduler();
  bool registered = false;
  TimePoint next{};
  while (alive()) {
    if (scheduler->Now() >= next) {
      registered = registered ? Heartbeat() : Register();
      next = scheduler->Now() + (registered ? kHeartbeatInterval : kRetryInterval);
    }
    if (registered && !reports_.empty() && !SendReports()) registered = false;
    if (alive() && scheduler->Now() < next) scheduler->Block(next);
  }
}

bool HelperHost::Register() {
  NodeRecord record;
  record.node_id = node();
  record.control_address = node() + ":1";
  record.data_address = node() + ":2";
  record.incarnation = options_.incarnation;
  record.features = options_.features;
  const auto answer = network_->Call<bool>(
      *this, kCoordinatorNode, kCallTimeout, [record](Host* host) -> absl::StatusOr<bool> {
        ECPIPE_RETURN_IF_ERROR(static_cast<CoordinatorHost*>(host)->repairs().Register(record));
        return true;
      });
  return answer.ok();
}

bool HelperHost::Heartbeat() {
  NodeReport report;
  report.active_sessions = counts().active_sessions;
  const auto answer = network_->Call<bool>(
      *this, kCoordinatorNode, kCallTimeout,
      [report, node = node(),
       incarnation = options_.incarnation](Host* host) -> absl::StatusOr<bool> {
        NodeRegistry& nodes = static_cast<CoordinatorHost*>(host)->repairs().nodes();
        ECPIPE_RETURN_IF_ERROR(nodes.Heartbeat(node, incarnation, report));
        return true;
      });
  return !absl::IsNotFound(answer.status());
}

bool HelperHost::SendReports() {
  while (alive() && !reports_.empty()) {
    const PartReport report = reports_.front();
    reports_.pop_front();
    const auto answer = network_->Call<bool>(
        *this, kCoordinatorNode, kCallTimeout,
        [report, node = node()](Host* host) -> absl::StatusOr<bool> {
          RepairCoordinator& repairs = static_cast<CoordinatorHost*>(host)->repairs();
          if (const std::string corrupt = CorruptBlockOf(report.status); !corrupt.empty()) {
            repairs.ReportCorrupt(node, report.repair_id, corrupt,
                                  std::string(report.status.message()));
          }
          repairs.ReportPart(node, report.repair_id, report.attempt, report.status);
          repairs.ReportLinks(node, report.repair_id, report.links);
          return true;
        });
    if (answer.ok()) continue;
    reports_.push_front(report);
    return false;
  }
  return true;
}

}  // namespace ecpipe::sim
