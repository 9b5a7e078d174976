// SPDX-License-Identifier: Apache-2.0
// A row of calls to the coordinator's service, with nothing of a network in between: it answers
// each, what it takes is within its limits, and what it says can be read.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/process/log.h"
#include "coordinator/edge/coordinator_service.h"
#include "coordinator/sources/hdfs_source.h"
#include "coordinator/upkeep/block_checker.h"
#include "fuzz_input.h"
#include "model/block_id.h"
#include "net/tcp_socket.h"
#include "rpc/convert/part_proto.h"
#include "rpc/convert/plan_proto.h"
#include "unit/coordinator/fakes.h"
#include "unit/coordinator/store/scratch_directory.h"

namespace ecpipe {
namespace {

constexpr uint64_t kBlockBytes = 1000;  // of MemoryCatalog's

class CheckedCatalog : public MemoryCatalog {
 public:
  absl::StatusOr<PutCounts> Put(const std::vector<Stripe>& put) override {
    for (const Stripe& stripe : put) {
      const auto code = CreateErasureCode(stripe.code);
      ECPIPE_CHECK(code.ok() && stripe.blocks.size() == static_cast<size_t>((*code)->n()));
      ECPIPE_CHECK(stripe.block_bytes >= 1 && stripe.block_bytes <= kMaxBlockBytes);
      ECPIPE_CHECK((*code)->layout().Fits(stripe.block_bytes));
      for (const BlockPlace& place : stripe.blocks) {
        ECPIPE_CHECK(ValidateBlockId(place.block_id).ok() && !place.node.empty());
      }
    }
    return PutCounts{};
  }
};

// Helpers that answer a probe at once, with times that the fuzzer says.
class ProbedHelpers : public FakeHelpers {
 public:
  std::vector<absl::StatusOr<Started>> StartParts(
      const std::vector<Handout>& handouts, Duration timeout,
      std::optional<Duration> straggler_after) override {
    std::vector<absl::StatusOr<Started>> statuses =
        FakeHelpers::StartParts(handouts, timeout, straggler_after);
    for (const Handout& handout : handouts) {
      if (!handout.part.probe) continue;
      std::vector<LinkTiming> timings;
      for (const HopSpec& hop : handout.part.hops) {
        for (const HopOutput& output : hop.outputs) {
          timings.push_back({output.node, answer.bytes, answer.seconds, answer.network_seconds});
        }
      }
      prober->Report(handout.helper.node, handout.part.repair_id, absl::OkStatus(), timings);
    }
    return statuses;
  }

  LinkProber* prober = nullptr;
  LinkTiming answer;
};

double TakeDouble(FuzzInput* input) { return std::bit_cast<double>(input->Take<uint64_t>()); }

// Each node has a file of block b0, which the catalog has on n0.
class FilesOfB0 : public BlockFileGateway {
 public:
  absl::StatusOr<Files> ListBlockFiles(const HelperAddress&, const std::string& after) override {
    if (after >= "b0") return Files{};
    return Files{{{"b0", 1000, "v"}}, /*more=*/false};
  }
  absl::StatusOr<std::vector<absl::Status>> RemoveBlockFiles(
      const HelperAddress&, const std::vector<BlockFile>& files) override {
    return std::vector<absl::Status>(files.size());
  }
  absl::StatusOr<WholeBlock> CheckBlock(const HelperAddress&, const std::string&,
                                        const std::stop_token&) override {
    return WholeBlock{1000, "", false};
  }
};

// A coordinator over six nodes in memory, new for each input.
class World {
 public:
  World() {
    for (int i = 0; i < 6; ++i) {
      ECPIPE_CHECK(repairs_.Register(FakeNode("n" + std::to_string(i))).ok());
    }
    helpers_.prober = &prober_;
  }

  void Call(FuzzInput* input) {
    using Service = CoordinatorServiceImpl;
    switch (input->Take<uint8_t>() % 19) {
      case 0:
        return CallRegister(input);
      case 1:
        Do(&Service::Heartbeat, input);
        return;
      case 2:
        Do(&Service::ReportPart, input);
        return;
      case 3:
        return CallBegin(input);
      case 4:
        Do(&Service::FinishRepair, input);
        return;
      case 5:
        Do(&Service::GetRepair, input);
        return;
      case 6:
        return CallExplain(input);
      case 7:
        Do(&Service::PutStripes, input);
        return;
      case 8:
        Do(&Service::ListStripes, input);
        return;
      case 9:
        Do(&Service::LocateBlock, input);
        return;
      case 10:
        return CallBeginRecovery(input);
      case 11:
        Do(&Service::ChangeRecovery, input);
        return;
      case 12:
        return CallProbe(input);
      case 14:
        Do(&Service::ListNodeBlocks, input);
        return;
      case 15:
        Do(&Service::CheckBlocks, input);
        return;
      case 16:
        Do(&Service::DryRun, input);
        return;
      case 17:
        Do(&Service::ListExtraCopies, input);
        return;
      case 18:
        Do(&Service::RemoveExtraCopies, input);
        return;
      default:
        return CallStatus();
    }
  }

 private:
  // Reads the request from the input and makes the call; the response, if it was granted.
  template <typename Request, typename Response>
  std::optional<Response> Do(grpc::Status (CoordinatorServiceImpl::*method)(grpc::ServerContext*,
                                                                            const Request*,
                                                                            Response*),
                             FuzzInput* input, Request* request) {
    if (!request->ParseFromString(input->Text())) return std::nullopt;
    Response response;
    const grpc::Status status = (service_.*method)(nullptr, request, &response);
    ECPIPE_CHECK(status.error_code() >= 0 && status.error_code() <= 16);
    if (!status.ok()) return std::nullopt;
    ECPIPE_CHECK(Response().ParseFromString(response.SerializeAsString()));
    return response;
  }
  template <typename Request, typename Response>
  std::optional<Response> Do(grpc::Status (CoordinatorServiceImpl::*method)(grpc::ServerContext*,
                                                                            const Request*,
                                                                            Response*),
                             FuzzInput* input) {
    Request request;
    return Do(method, input, &request);
  }

  void CallRegister(FuzzInput* input) {
    v1::RegisterRequest request;
    if (!Do(&CoordinatorServiceImpl::Register, input, &request)) return;
    const v1::NodeInfo& node = request.node();
    ECPIPE_CHECK(ValidateBlockId(node.node_id()).ok());
    ECPIPE_CHECK(ParseHostPort(node.control_address()).ok());
    ECPIPE_CHECK(ParseHostPort(node.data_address()).ok());
    ECPIPE_CHECK(node.redis_address().empty() || ParseHostPort(node.redis_address()).ok());
  }

  // Of the target's shortest block: `by_facts` where the request itself describes the stripe.
  static uint64_t BlockBytesOf(const v1::RepairTarget& target, uint64_t by_facts) {
    return target.has_facts() ? by_facts : kBlockBytes;
  }

  void CallBegin(FuzzInput* input) {
    v1::BeginRepairRequest request;
    const auto response = Do(&CoordinatorServiceImpl::BeginRepair, input, &request);
    if (!response) return;
    const uint64_t block_bytes = BlockBytesOf(request.target(), response->block_bytes());
    ECPIPE_CHECK(response->block_bytes() == block_bytes);
    ECPIPE_CHECK(response->has_part() == request.target().hosts().empty());
    if (!response->has_part()) return;
    const auto part = PartFromProto(response->part());
    ECPIPE_CHECK(part.ok() && part->grid.offset + part->grid.bytes <= block_bytes);
  }

  void CallExplain(FuzzInput* input) {
    v1::ExplainRepairRequest request;
    const auto response = Do(&CoordinatorServiceImpl::ExplainRepair, input, &request);
    if (!response) return;
    const auto plan = PlanFromProto(*response);
    const uint64_t block_bytes = BlockBytesOf(request.target(), kMaxBlockBytes);
    ECPIPE_CHECK(plan.ok() && plan->grid.offset + plan->grid.bytes <= block_bytes);
  }

  // Recoveries have a thread, which costs more than all else here: only who begins one has it.
  void CallBeginRecovery(FuzzInput* input) {
    if (!std::exchange(recovering_, true)) ECPIPE_CHECK(recoveries_.Open({}).ok());
    Do(&CoordinatorServiceImpl::BeginRecovery, input);
  }

  void CallProbe(FuzzInput* input) {
    helpers_.answer.bytes = input->Take<uint64_t>();
    helpers_.answer.seconds = TakeDouble(input);
    helpers_.answer.network_seconds = TakeDouble(input);
    const auto response = Do(&CoordinatorServiceImpl::ProbeLinks, input);
    if (!response) return;
    for (const auto& outcome : response->outcomes()) {
      const double speed = outcome.bytes_per_second();
      ECPIPE_CHECK(!outcome.error().empty() || (std::isfinite(speed) && speed > 0));
    }
  }

  void CallStatus() {
    const v1::GetStatusRequest checks_no_node;  // it would connect to addresses from the input
    v1::GetStatusResponse status;
    ECPIPE_CHECK(service_.GetStatus(nullptr, &checks_no_node, &status).ok());
    ECPIPE_CHECK(v1::GetStatusResponse().ParseFromString(status.SerializeAsString()));
    v1::ListLinksResponse links;
    ECPIPE_CHECK(service_.ListLinks(nullptr, nullptr, &links).ok());
    for (const auto& link : links.links()) {
      ECPIPE_CHECK(std::isfinite(link.bytes_per_second()) && link.bytes_per_second() > 0);
    }
    const v1::ListRecoveriesRequest all;
    v1::ListRecoveriesResponse recoveries;
    ECPIPE_CHECK(service_.ListRecoveries(nullptr, &all, &recoveries).ok());
    ECPIPE_CHECK(v1::ListRecoveriesResponse().ParseFromString(recoveries.SerializeAsString()));
  }

  static LinkProber::Options ProbeOptions() {
    LinkProber::Options options;
    options.patience = Duration(0);
    return options;
  }

  bool recovering_ = false;
  CheckedCatalog catalog_;
  MemoryJournal journal_;
  ProbedHelpers helpers_;
  FakeClock clock_;
  HostedNews news_;
  RepairCoordinator repairs_{&catalog_, &journal_, &helpers_, &clock_, {}, &news_};
  RecoveryManager recoveries_{&catalog_, &journal_, &repairs_, &helpers_, &news_, &clock_, {}};
  LinkProber prober_{&repairs_.nodes(), &repairs_.links(), &repairs_.busy(),
                     &helpers_,         &clock_,           ProbeOptions()};
  // Nothing is there, and nothing can be written there.
  ScratchDirectory scratch_;
  std::unique_ptr<LimitBook> limits_ = LimitBook::Open(scratch_.File("limits.db")).value();
  HdfsSource hdfs_{&repairs_.nodes(), &repairs_.corrupt(), nullptr, true, &clock_};
  BlockChecker checker_{&repairs_.corrupt(), &repairs_.nodes(), &catalog_, &clock_,
                        [](const HelperAddress&, const std::string&, const std::stop_token&) {
                          return absl::UnavailableError("nobody is there");
                        }};
  FilesOfB0 files_;
  ExtraCopies extra_copies_{&catalog_, &repairs_, &helpers_, &files_, &clock_};
  CoordinatorServiceImpl service_{&repairs_,
                                  &recoveries_,
                                  &prober_,
                                  &catalog_,
                                  StripeSources({&hdfs_}),
                                  &journal_,
                                  limits_.get(),
                                  &checker_,
                                  &helpers_,
                                  &extra_copies_,
                                  {},
                                  {},
                                  AddressRule::Create({}).value(),
                                  ""};
};

bool Prepare() {
  // The fakes check what they are handed with EXPECT, which is to end the run like a CHECK.
  GTEST_FLAG_SET(break_on_failure, true);
  SetLog({.least_level = LogLevel::kError});
  return true;
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostCalls = 8;
  static const bool prepared = ecpipe::Prepare();
  ECPIPE_CHECK(prepared);
  ecpipe::FuzzInput input(data, size);
  ecpipe::World world;
  for (int calls = 0; calls < kMostCalls && !input.empty(); ++calls) world.Call(&input);
  return 0;
}
