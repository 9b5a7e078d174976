// SPDX-License-Identifier: Apache-2.0
#include "sim/world.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/fault_points.h"
#include "base/process/log.h"
#include "base/status.h"
#include "codec/gf256.h"

namespace ecpipe::sim {
namespace {

// Where sub-block `a` of a block has its byte `at`.
uint64_t PlaceOf(const BlockLayout& layout, uint32_t a, uint64_t at) {
  uint64_t place = 0;
  layout.ForEachPiece(a, at, 1, [&](uint64_t offset, uint64_t, uint64_t) {
    place = offset;
    return true;
  });
  return place;
}

// All blocks of a stripe from its data blocks, straight from the generator.
std::vector<std::vector<uint8_t>> Encode(const ErasureCode& code,
                                         std::vector<std::vector<uint8_t>> blocks) {
  const BlockLayout layout = code.layout();
  const Matrix& generator = code.generator();
  const auto cuts = static_cast<int>(layout.sub_blocks);
  const uint64_t bytes = blocks[0].size();
  blocks.resize(static_cast<size_t>(code.n()), std::vector<uint8_t>(bytes));
  for (int row = code.k() * cuts; row < code.n() * cuts; ++row) {
    std::vector<uint8_t>& parity = blocks[static_cast<size_t>(row / cuts)];
    for (uint64_t at = 0; at < bytes / layout.sub_blocks; ++at) {
      uint8_t sum = 0;
      for (int column = 0; column < code.k() * cuts; ++column) {
        const std::vector<uint8_t>& data = blocks[static_cast<size_t>(column / cuts)];
        const uint64_t place = PlaceOf(layout, static_cast<uint32_t>(column % cuts), at);
        sum ^= GfMultiply(generator.at(row, column), data[place]);
      }
      parity[PlaceOf(layout, static_cast<uint32_t>(row % cuts), at)] = sum;
    }
  }
  return blocks;
}

}  // namespace

Outcome RunSeed(uint64_t seed, const RunOptions& options) {
  World world(seed, options);
  return world.Run();
}

World::World(uint64_t seed, const RunOptions& options)
    : scheduler_(seed),
      checks_(&scheduler_),
      scenario_(MakeScenario(&scheduler_.random())),
      network_(&scheduler_, scenario_.network) {
  scheduler_.SetTrace(options.trace);
  scheduler_.SetFaultPoint(
      [this](Process* process, const char* name) { return StrikeFaultPoint(process, name); });
  // Which fault is armed does not matter: the scheduler decides at each point that is passed.
  ArmFault("sim", {});
  state_.on_move = [this](const std::string& block_id, const std::string& node) {
    OnMove(block_id, node);
  };
  checks_.on_read = [this](const std::string& block_id, const std::string& node) {
    OnRead(block_id, node);
  };
  state_.on_record = [this](const RepairRecord& record) { OnRepair(record); };
  outcome_.scenario = Describe(scenario_);
}

World::~World() { DisarmAllFaults(); }

Outcome World::Run() {
  scheduler_.Trace(outcome_.scenario);
  Build();
  Schedule();
  AwaitOperations();
  AwaitWhatCanEnd();
  Heal();
  CheckRecoveries();
  CheckHealthy();
  CheckNothingLeft();
  CheckPlaces();
  for (const std::string& fault : JudgeHistory(checks_.history())) checks_.Violation(fault);
  TearDown();
  outcome_.violations = checks_.violations();
  outcome_.most_hops = checks_.most_hops();
  outcome_.fingerprint = scheduler_.fingerprint();
  outcome_.steps = scheduler_.steps();
  return outcome_;
}

void World::Build() {
  const auto code = CreateErasureCode(scenario_.code);
  ECPIPE_CHECK(code.ok());
  for (int i = 0; i < scenario_.stripes; ++i) MakeStripe(i, **code);
  if (scenario_.known_links) WriteLinksDown();
  if (scenario_.marked) MarkOne();
  ChooseOlderNodes();
  StartCoordinator();
  for (int i = 0; i < scenario_.nodes; ++i) StartHelper("n" + std::to_string(i));
  const auto registered = [this] {
    return network_.Find(kCoordinatorNode) != nullptr &&
           coordinator_->repairs().nodes().All().size() == helpers_.size();
  };
  checks_.Expect(RunUntil(registered, std::chrono::minutes(2)), "a helper could not register");
}

void World::WriteLinksDown() {
  auto links = std::make_shared<LinkTable>();
  for (int from = 0; from < scenario_.nodes; ++from) {
    for (int to = 0; to < scenario_.nodes; ++to) {
      const double share = 0.05 + 0.95 * scheduler_.random().Fraction();
      // So slow that there is time to plan: the blocks are small.
      (*links)[{"n" + std::to_string(from), "n" + std::to_string(to)}] = share * 1e5;
    }
  }
  links_ = std::move(links);
}

void World::MarkOne() {
  const BlockPlace& place = scheduler_.random().Pick(RandomStripe().blocks);
  disks_[place.node].faults[place.block_id] = Disk::Fault::kDamaged;
  CorruptBlock block{.block_id = place.block_id, .node = place.node, .reason = "checksum mismatch"};
  state_.marks[{place.block_id, place.node}] = {std::move(block), TimePoint{}};
  scheduler_.Trace("block " + place.block_id + " is marked as corrupt on " + place.node);
}

// Each version has what the one before it has.
void World::ChooseOlderNodes() {
  const auto versions =
      std::to_array<std::vector<std::string>>({{}, {"sub-blocks"}, {"sub-blocks", "raw-rows"}});
  while (older_.size() < static_cast<size_t>(scenario_.older_nodes)) {
    older_[RandomNode()] = FeaturesNamed(versions[scheduler_.random().Below(versions.size())]);
  }
}

void World::MakeStripe(int number, const ErasureCode& code) {
  Stripe stripe{"s" + std::to_string(number), scenario_.code, scenario_.block_bytes, {}};
  std::vector<std::vector<uint8_t>> data(static_cast<size_t>(code.k()),
                                         std::vector<uint8_t>(scenario_.block_bytes));
  for (std::vector<uint8_t>& block : data) scheduler_.random().Fill(block);
  std::vector<std::vector<uint8_t>> blocks = Encode(code, std::move(data));
  for (int i = 0; i < code.n(); ++i) {
    const std::string block_id = stripe.stripe_id + "-b" + std::to_string(i);
    const std::string node = "n" + std::to_string((i + number) % scenario_.nodes);
    std::vector<uint8_t>& bytes = blocks[static_cast<size_t>(i)];
    stripe.blocks.push_back({block_id, node});
    checks_.Note({.kind = HistoryEvent::Kind::kPlaced,
                  .stripe = stripe.stripe_id,
                  .block = block_id,
                  .node = node});
    disks_[node].blocks[block_id] = std::make_shared<const std::vector<uint8_t>>(bytes);
    checks_.SetTruth(block_id, std::move(bytes));
  }
  state_.stripes[stripe.stripe_id] = std::move(stripe);
}

void World::StartHelper(const std::string& node) {
  if (wiped_.contains(node) && !returned_.contains(node)) return;
  if (helpers_[node] != nullptr) return;
  scheduler_.Trace(node + " starts");
  HelperHost::Options options{.incarnation = ++incarnations_};
  if (older_.contains(node)) options.features = older_[node];
  if (limited_) options.max_sessions = scenario_.limits.sessions;
  helpers_[node] = std::make_shared<HelperHost>(node, options, &disks_[node], &network_, &checks_);
}

void World::StartCoordinator() {
  if (coordinator_ != nullptr) return;
  CoordinatorHost::Limits limits;
  if (limited_) {
    limits = {scenario_.limits.running_repairs, scenario_.limits.streams_per_node};
  }
  coordinator_ = std::make_shared<CoordinatorHost>(&state_, &network_, links_, limits);
  coordinator_->Pin();
  scheduler_.Spawn(coordinator_->process(), [this, host = coordinator_.get()] {
    host->Start();
    if (host->alive()) CheckMarksTakenUp(host);
    host->Unpin();
  });
}

void World::CrashHelper(const std::string& node) {
  std::shared_ptr<HelperHost>& helper = helpers_[node];
  if (helper == nullptr) return;
  scheduler_.Trace(node + " crashes");
  helper->Crash();
  Bury(std::exchange(helper, nullptr));
}

void World::CrashCoordinator() {
  if (coordinator_ == nullptr) return;
  scheduler_.Trace("coordinator crashes");
  coordinator_->Crash();
  Bury(std::exchange(coordinator_, nullptr));
}

void World::Bury(std::shared_ptr<Host> host) {
  ++burials_;
  auto owned = std::make_shared<std::shared_ptr<Host>>(std::move(host));
  scheduler_.Spawn(outside_, [this, owned] {
    while ((*owned)->pinned()) scheduler_.Sleep(std::chrono::milliseconds(10));
    owned->reset();
    --burials_;
  });
}

absl::Status World::StrikeFaultPoint(Process* process, const char* name) {
  if (!chaos_ || !process->alive) return absl::OkStatus();
  if (!scheduler_.random().Chance(scenario_.fault_point)) return absl::OkStatus();
  scheduler_.Trace(process->name + " at fault point " + name);
  if (scheduler_.random().Chance(0.5)) {
    const Duration pause = std::chrono::milliseconds(scheduler_.random().Between(50, 12'000));
    if (process->name == kCoordinatorNode) {
      CrashCoordinator();
      scheduler_.After(pause, [this] { StartCoordinator(); });
    } else if (helpers_.contains(process->name)) {
      CrashHelper(process->name);
      scheduler_.After(pause, [this, node = process->name] { StartHelper(node); });
    }
  }
  return absl::InternalError(std::string("fault point ") + name);
}

}  // namespace ecpipe::sim
