// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/doctor_service.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "base/bytes/utf8_text.h"
#include "helper/edge/format_check.h"
#include "helper/edge/root_check.h"
#include "model/plan/features.h"
#include "rpc/examine/self_facts.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr int kMostPeers = 10'000;  // as many as the coordinator has nodes
constexpr uint32_t kMostDialMillis = 60'000;

const char* StoreName(StoreKind store) {
  if (store == StoreKind::kHdfs) return "hdfs";
  return store == StoreKind::kQfs ? "qfs" : "plain";
}

v1::DirectoryFacts ExamineRoot(const std::string& path, RootUse use) {
  v1::DirectoryFacts facts = RoomOf(path);
  if (absl::Status usable = CheckRoot(path, use); !usable.ok()) {
    facts.set_error(CleanText(std::string(usable.message())));
  }
  return facts;
}

template <typename Misfits>
uint32_t FillMisfits(const FormatLook::Misfits& from, Misfits* misfits) {
  for (const FormatLook::Misfit& each : from.first) {
    auto* const misfit = misfits->Add();
    misfit->set_name(CleanText(each.name));
    misfit->set_what(CleanText(each.what));
  }
  return from.count;
}

v1::FormatFacts FormatOf(const absl::StatusOr<FormatLook>& look) {
  v1::FormatFacts facts;
  if (!look.ok()) {
    facts.set_error(CleanText(std::string(look.status().message())));
    return facts;
  }
  facts.set_names(look->names);
  facts.set_more(look->more);
  facts.set_headers(look->headers);
  facts.set_unreadable_count(FillMisfits(look->unreadable, facts.mutable_unreadable()));
  facts.set_foreign_count(FillMisfits(look->foreign, facts.mutable_foreign()));
  facts.set_wrong(CleanText(look->wrong));
  return facts;
}

std::vector<DialTarget> TargetsOf(const v1::ExamineNodeRequest& request,
                                  const std::string& coordinator) {
  std::vector<DialTarget> targets;
  targets.push_back({"", "control", coordinator});
  for (const v1::ExamineNodeRequest::Peer& peer : request.peers()) {
    targets.push_back({peer.node_id(), "control", peer.control_address()});
    targets.push_back({peer.node_id(), "data", peer.data_address()});
  }
  return targets;
}

}  // namespace

HelperDoctor::HelperDoctor(const HelperConfig& config, BlockStore* store,
                           std::shared_ptr<TlsContext> tls)
    : coordinator_(config.coordinator), kind_(config.store), store_(store), tls_(std::move(tls)) {
  for (const std::string& path : config.roots) {
    roots_.push_back({path, std::make_unique<RootCalls>(path)});
  }
}

grpc::Status HelperDoctor::ExamineNode(grpc::ServerContext*, const v1::ExamineNodeRequest* request,
                                       v1::NodeExamination* response) {
  if (request->peers_size() > kMostPeers) {
    return ToGrpc(absl::InvalidArgumentError("at most " + std::to_string(kMostPeers) + " peers"));
  }
  if (busy_.exchange(true)) {
    return ToGrpc(absl::ResourceExhaustedError("this helper is being examined already"));
  }
  const TimePoint begun = Clock::System().Now();
  response->set_store(StoreName(kind_));
  for (const std::string& name : FeatureNames(OwnFeatures())) response->add_features(name);
  ExamineRoots(response);
  const auto patience = std::chrono::milliseconds(std::min(request->dial_ms(), kMostDialMillis));
  DialAll(TargetsOf(*request, coordinator_), Clock::System().Now() + patience,
          response->mutable_dials());
  FillDaemonFacts(tls_.get(), response->mutable_daemon());
  response->set_took_micros(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::System().Now() - begun).count());
  busy_ = false;
  return grpc::Status::OK;
}

void HelperDoctor::ExamineRoots(v1::NodeExamination* response) {
  // Other storage systems store their blocks themselves.
  const RootUse use = kind_ == StoreKind::kPlain ? RootUse::kTakeBlocks : RootUse::kReadBlocks;
  std::vector<RootCalls::Pending<v1::DirectoryFacts>> pending;
  for (const Root& root : roots_) {
    pending.push_back(root.calls->Begin<v1::DirectoryFacts>(
        [path = root.path, use] { return ExamineRoot(path, use); }));
  }
  const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
  for (size_t i = 0; i < roots_.size(); ++i) {
    v1::DirectoryFacts* const facts = response->add_roots();
    absl::StatusOr<v1::DirectoryFacts> answer = pending[i].Await(deadline);
    if (answer.ok()) {
      *facts = *std::move(answer);
    } else {
      facts->set_path(CleanText(roots_[i].path));
      facts->set_error(CleanText(std::string(answer.status().message())));
    }
    // Its directory may answer all the same.
    const absl::Status trouble = store_->TroubleOf(roots_[i].path);
    if (facts->error().empty() && !trouble.ok()) {
      facts->set_error(CleanText(std::string(trouble.message())));
    }
    facts->set_takes_blocks(use == RootUse::kTakeBlocks);
  }
  LookAtFormats(response);
}

// A root that has just failed or hung is not asked again.
void HelperDoctor::LookAtFormats(v1::NodeExamination* response) {
  std::map<int, RootCalls::Pending<FormatLook>> pending;
  for (int i = 0; i < response->roots_size(); ++i) {
    v1::DirectoryFacts* const facts = response->mutable_roots(i);
    if (!facts->error().empty()) {
      facts->mutable_format()->set_error("it was not looked at, since it cannot be used");
      continue;
    }
    const Root& root = roots_[static_cast<size_t>(i)];
    pending[i] = root.calls->Begin<FormatLook>(
        [path = root.path, store = kind_] { return LookAtFormat(path, store, Clock::System()); });
  }
  const TimePoint deadline = Clock::System().Now() + RootCalls::kPatience;
  for (auto& [i, call] : pending) {
    *response->mutable_roots(i)->mutable_format() = FormatOf(call.Await(deadline));
  }
}

}  // namespace ecpipe
