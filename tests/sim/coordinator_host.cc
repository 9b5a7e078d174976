// SPDX-License-Identifier: Apache-2.0
#include "sim/coordinator_host.h"

#include <algorithm>
#include <functional>

#include "base/status.h"
#include "sim/helper_host.h"

namespace ecpipe::sim {
namespace {

constexpr Duration kCancelTimeout = std::chrono::seconds(1);
constexpr Duration kCheckTimeout = std::chrono::seconds(60);
constexpr Duration kExpiryInterval = std::chrono::seconds(1);

}  // namespace

// Calls to several helpers at once, each on a fibre.
class CoordinatorHost::Helpers : public HelperGateway {
 public:
  Helpers(Network* network, Host* host) : network_(network), host_(host) {}

  std::vector<absl::StatusOr<Started>> StartParts(
      const std::vector<Handout>& handouts, Duration timeout,
      std::optional<Duration> straggler_after) override {
    const std::vector<absl::Status> outcomes = CallAll(handouts.size(), [&](size_t i) {
      const Handout& handout = handouts[i];
      const auto answer = network_->Call<bool>(
          *host_, handout.helper.node, timeout,
          [part = handout.part](Host* host) -> absl::StatusOr<bool> {
            ECPIPE_RETURN_IF_ERROR(static_cast<HelperHost*>(host)->StartPart(part));
            return true;
          });
      return Annotate(answer.status(), "node " + handout.helper.node);
    });
    const bool all_but_one =
        std::count_if(outcomes.begin(), outcomes.end(),
                      [](const auto& outcome) { return absl::IsDeadlineExceeded(outcome); }) == 1;
    std::vector<absl::StatusOr<Started>> answers;
    for (const absl::Status& outcome : outcomes) {
      if (outcome.ok()) {
        answers.emplace_back(Started{});
      } else if (straggler_after && all_but_one && absl::IsDeadlineExceeded(outcome)) {
        answers.emplace_back(absl::CancelledError("not waited for"));
      } else {
        answers.emplace_back(outcome);
      }
    }
    return answers;
  }

  std::vector<absl::StatusOr<PartProgress>> AskParts(RepairId repair_id, uint32_t attempt,
                                                     const std::vector<HelperAddress>& helpers,
                                                     Duration timeout,
                                                     std::optional<Duration>) override {
    std::vector<absl::StatusOr<PartProgress>> answers(helpers.size());
    CallAll(helpers.size(), [&](size_t i) -> absl::Status {
      answers[i] = network_->Call<PartProgress>(
          *host_, helpers[i].node, timeout, [repair_id, attempt](Host* host) {
            return static_cast<HelperHost*>(host)->Progress(repair_id, attempt);
          });
      return absl::OkStatus();
    });
    return answers;
  }

  std::vector<absl::Status> CancelRepair(RepairId repair_id, uint32_t attempt,
                                         const std::vector<HelperAddress>& helpers) override {
    return EndParts(repair_id, attempt, helpers, /*keep=*/false);
  }
  std::vector<absl::Status> EndAttempt(RepairId repair_id, uint32_t attempt,
                                       const std::vector<HelperAddress>& helpers) override {
    return EndParts(repair_id, attempt, helpers, /*keep=*/true);
  }

  std::vector<absl::StatusOr<FoundBlocks>> FindBlocks(const std::vector<BlockQuestion>& questions,
                                                      Duration timeout) override {
    std::vector<absl::StatusOr<FoundBlocks>> answers(questions.size());
    CallAll(questions.size(), [&](size_t i) -> absl::Status {
      answers[i] = network_->Call<FoundBlocks>(
          *host_, questions[i].helper.node, timeout,
          [ids = questions[i].block_ids](Host* host) -> absl::StatusOr<FoundBlocks> {
            return static_cast<HelperHost*>(host)->FindBlocks(ids);
          });
      return absl::OkStatus();
    });
    return answers;
  }

  void ForgetConnection(const std::string&) override {}

 private:
  std::vector<absl::Status> EndParts(RepairId repair_id, uint32_t attempt,
                                     const std::vector<HelperAddress>& helpers, bool keep) {
    return CallAll(helpers.size(), [&](size_t i) -> absl::Status {
      const auto answer = network_->Call<bool>(
          *host_, helpers[i].node, kCancelTimeout, [=](Host* host) -> absl::StatusOr<bool> {
            static_cast<HelperHost*>(host)->EndParts(repair_id, attempt, keep);
            return true;
          });
      return answer.status();
    });
  }

  // Each call has a deadline, so this ends.
  std::vector<absl::Status> CallAll(size_t count, const std::function<absl::Status(size_t)>& call) {
    Scheduler* const scheduler = network_->scheduler();
    std::vector<absl::Status> outcomes(count);
    std::vector<uint64_t> fibres;
    for (size_t i = 0; i < count; ++i) {
      fibres.push_back(
          scheduler->Spawn(host_->process(), [&outcomes, &call, i] { outcomes[i] = call(i); }));
    }
    for (const uint64_t fibre : fibres) scheduler->JoinThread(fibre);
    return outcomes;
  }

  Network* const network_;
  Host* const host_;
};

CoordinatorHost::CoordinatorHost(CoordinatorState* state, Network* network,
                                 std::shared_ptr<const LinkTable> links, const Limits& limits)
    : Host(kCoordinatorNode, std::make_shared<Process>(Process{kCoordinatorNode})),
      network_(network),
      running_repairs_(limits.running_repairs),
      catalog_(state, [process = process()] { return WritableBy(*process); }),
      journal_(state, [process = process()] { return WritableBy(*process); }),
      marks_(state, process()),
      helpers_(std::make_unique<Helpers>(network, this)),
      repairs_(std::make_unique<RepairCoordinator>(
          &catalog_, &journal_, helpers_.get(), &Clock::System(),
          RepairCoordinator::Options{
              .max_running = limits.running_repairs, .links = links, .marks = &marks_},
          &hosted_watch_)),
      recoveries_(std::make_unique<RecoveryManager>(
          &catalog_, &journal_, repairs_.get(), helpers_.get(), &news_, &Clock::System(),
          RecoveryManager::Options{.streams_per_node = limits.streams_per_node})),
      checker_(std::make_unique<BlockChecker>(
          &repairs_->corrupt(), &repairs_->nodes(), &catalog_, &Clock::System(),
          [this](const HelperAddress& helper, const std::string& block_id, const std::stop_token&) {
            return AskForBlock(helper, block_id);
          })) {}

CoordinatorHost::~CoordinatorHost() {
  checker_.reset();
  hosted_watch_.Stop();
  recoveries_.reset();
}

void CoordinatorHost::Start() {
  const absl::Status restored = repairs_->corrupt().Restore();
  const auto interrupted = journal_.ClaimInterrupted(Clock::System().UnixMillis());
  hosted_watch_.Start(repairs_.get());
  const absl::Status opened = recoveries_->Open(*interrupted);
  network_->scheduler()->Trace("coordinator started: " + StatusText(restored) + ", " +
                               StatusText(opened));
  if (!alive()) return;
  checker_->Start();
  network_->Add(this);
  Pin();
  expiry_ = network_->scheduler()->Spawn(process(), [this] {
    while (alive()) {
      repairs_->Expire();
      network_->scheduler()->Block(network_->scheduler()->Now() + kExpiryInterval);
    }
    Unpin();
  });
}

absl::StatusOr<WholeBlock> CoordinatorHost::AskForBlock(const HelperAddress& helper,
                                                        const std::string& block_id) {
  return network_->Call<WholeBlock>(*this, helper.node, kCheckTimeout, [block_id](Host* host) {
    return static_cast<HelperHost*>(host)->CheckBlock(block_id);
  });
}

void CoordinatorHost::Crash() {
  process()->alive = false;
  network_->Remove(this);
  network_->scheduler()->Wake(expiry_);
}

}  // namespace ecpipe::sim
