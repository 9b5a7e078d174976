// SPDX-License-Identifier: Apache-2.0
// One simulated cluster, from its birth to the proof that nothing of it is left.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codec/erasure_code.h"
#include "sim/checks.h"
#include "sim/coordinator_host.h"
#include "sim/helper_host.h"
#include "sim/requestor_host.h"
#include "sim/scenario.h"

namespace ecpipe::sim {

// No operation may take longer, whatever goes wrong: every wait in it is bounded, and their sum is
// below this.
inline constexpr Duration kLongestOperation = std::chrono::seconds(240);

struct Outcome {
  std::vector<std::string> violations;
  uint64_t fingerprint = 0;  // of everything that happened
  uint64_t steps = 0;
  double virtual_seconds = 0;
  int operations = 0;
  int succeeded = 0;  // of these
  int recoveries = 0;
  size_t most_hops = 0;  // of a part; it has one in each lane
  std::string scenario;
};

struct RunOptions {
  // Called with every line of the trace.
  std::function<void(TimePoint, const std::string&)> trace;
};

// Runs the scenario of this seed. The same seed gives the same outcome, bit for bit.
Outcome RunSeed(uint64_t seed, const RunOptions& options);

class World {
 public:
  World(uint64_t seed, const RunOptions& options);
  ~World();

  Outcome Run();

 private:
  void Build();
  void WriteLinksDown();
  void MakeStripe(int number, const ErasureCode& code);
  void MarkOne();
  void ChooseOlderNodes();
  void StartHelper(const std::string& node);
  void StartCoordinator();
  void CrashHelper(const std::string& node);
  void CrashCoordinator();
  // Destroys a host that has crashed, once nobody is in it.
  void Bury(std::shared_ptr<Host> host);
  absl::Status StrikeFaultPoint(Process* process, const char* name);

  // chaos.cc: what goes wrong.
  void Schedule();
  void Do(const Scenario::Action& action);
  // Undoes what an action broke, unless trouble is lasting.
  void UndoAfter(Duration lasts, std::function<void()> undo);
  void LoseBlock();
  void SayWrongly();
  const Stripe& RandomStripe();
  std::string RandomNode();

  // operations.cc: what is asked.
  void Begin(const Scenario::Operation& operation);
  void Operate(RequestorHost* host, Scenario::Operation::Kind kind, bool must_succeed);
  bool MustSucceed(const Scenario::Operation& operation) const;
  RepairTarget TargetFor(Scenario::Operation::Kind kind, bool must_succeed);
  static std::string StripeOf(const std::string& block_id);
  // So many nodes without a block of the stripe, whose helpers live; none if there are fewer.
  std::vector<std::string> FreeNodes(const Stripe& stripe, size_t count);

  // liveness.cc: what nobody mends.
  void AwaitWhatCanEnd();
  void CheckSaysWhy(RecoveryId id);
  // Whether nothing at all is wrong with the node, its helper and its links.
  bool Works(const std::string& node) const;
  // False: perhaps not.
  bool CanBeRebuilt(const Stripe& stripe, const std::string& block_id);

  // recoveries.cc: what the operator does.
  void WipeAndRecover(const Scenario::Operation& operation);
  // Asks for the recovery of a lost node until the coordinator has it.
  void BeginRecovery(const std::string& node, double delay_seconds);
  // Asks until the coordinator says that it is so, or that the recovery has ended.
  void ChangeRecovery(RecoveryId id, RecoveryChange change);
  void ResumeRecoveries();
  // A repair is new in the journal.
  void OnRepair(const RepairRecord& record);

  // phases.cc: the end.
  bool RunUntil(const std::function<bool()>& done, Duration patience);
  void Heal();
  void Upgrade();
  void AwaitOperations();
  void CheckRecoveries();
  bool RecoveriesEnded() const;
  void CheckHealthy();
  void CheckNothingLeft();
  void CheckPlaces();
  // A part is about to read the node's copy of a block.
  void OnRead(const std::string& block_id, const std::string& node);
  void CheckMarks();
  void CheckMarksTakenUp(CoordinatorHost* coordinator);
  // Whose repair stores the block there; 0: of none.
  RecoveryId RecoveryOf(const std::string& block_id, const std::string& node) const;
  void OnMove(const std::string& block_id, const std::string& node);
  void TearDown();

  Scheduler scheduler_;
  Checks checks_;
  const Scenario scenario_;
  Network network_;
  std::shared_ptr<Process> outside_ = std::make_shared<Process>(Process{"outside"});
  CoordinatorState state_;
  std::map<std::string, Disk> disks_;                           // by node
  std::map<std::string, std::shared_ptr<HelperHost>> helpers_;  // shared until they are buried
  std::shared_ptr<const LinkTable> links_;  // null: the coordinator is told of none
  std::shared_ptr<CoordinatorHost> coordinator_;
  std::map<std::string, Features> older_;  // nodes of an earlier version, with what it has
  std::set<std::string> wiped_;            // nodes that are lost with their disks
  std::set<std::string> returned_;         // of these: nodes that came back with an empty one
  std::set<std::string> lost_;             // blocks that are gone from where the catalog has them
  std::set<std::string> lossy_;            // stripes of which a block has been lost
  // Recoveries that the operator has been told are paused or cancelled: what was asked for.
  std::map<RecoveryId, std::string> at_rest_;
  int burials_ = 0;  // under way
  int operations_running_ = 0;
  int requestors_ = 0;  // so far
  uint64_t incarnations_ = 0;
  bool chaos_ = false;
  bool limited_ = true;  // scenario_.limits hold
  Outcome outcome_;
};

}  // namespace ecpipe::sim
