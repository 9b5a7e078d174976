// SPDX-License-Identifier: Apache-2.0
#include "coordinator/planning/repair_planner.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "codec/check_rows.h"
#include "codec/shortened_code.h"
#include "coordinator/planning/helper_paths.h"

namespace ecpipe {
namespace {

constexpr char kUnfitTarget[] = "ecpipe/unfit-target";

// A requestor that bears a node's name would have its hop run there.
std::string RequestorName(const std::string& name) {
  return "requestor:" + (name.empty() ? std::string("anonymous") : name);
}

// Why the node cannot take part now; empty if it can.
std::string Unfit(const std::string& node, const std::optional<NodeView>& view,
                  TransportKind transport, const RepairPlanner::Refused& refused) {
  if (const auto found = refused.find(node); found != refused.end()) return found->second;
  if (!view) return "its helper has not registered";
  switch (view->state) {
    case NodeState::kDead:
      return absl::StrFormat("no heartbeat %s %.1f s",
                             view->heartbeat_unknown ? "since the coordinator's start," : "for",
                             view->seconds_since_heartbeat);
    case NodeState::kDraining:
      return "its helper is shutting down";
    case NodeState::kLive:
      break;
  }
  if (transport == TransportKind::kRedis && view->record.redis_address.empty()) {
    return "its helper offers no redis transport";
  }
  return "";
}

// A survivor that can be used.
struct Candidate {
  int block_index;
  bool suspect;
  bool second;    // its node gives another block as well
  size_t wish;    // place in the request's order
  uint32_t load;  // sessions that its helper runs
};

// "block b1" or "blocks b1, b2".
std::string Named(const std::vector<std::string>& block_ids) {
  std::string text = block_ids.size() == 1 ? "block" : "blocks";
  for (const std::string& id : block_ids) text += (&id == &block_ids[0] ? " " : ", ") + id;
  return text;
}

// The part of each sub-block that the range touches, in whole units, and in slices of whole units:
// then a slice of all sub-blocks is a piece of the block.
SliceGrid OverSubBlocks(const SliceGrid& range, const BlockLayout& layout) {
  if (layout.sub_blocks == 1) return range;
  const uint64_t unit = layout.unit_bytes;
  const uint64_t group = layout.group_bytes();
  const uint64_t first = range.offset / group;
  const uint64_t end = (range.offset + range.bytes + group - 1) / group;
  SliceGrid grid;
  grid.offset = first * unit;
  grid.bytes = (end - first) * unit;
  const uint64_t units = range.slice_bytes / unit;
  grid.slice_bytes = static_cast<uint32_t>(std::max<uint64_t>(1, units) * unit);
  return grid;
}

// INVALID_ARGUMENT: one of the wanted blocks does not exist.
absl::StatusOr<std::vector<uint64_t>> LengthsOf(const WantedBlocks& wanted) {
  std::vector<uint64_t> lengths;
  for (const int index : wanted.indices) {
    lengths.push_back(wanted.stripe.BytesOf(index));
    if (lengths.back() > 0) continue;
    return absl::InvalidArgumentError(
        "block " + wanted.stripe.blocks[static_cast<size_t>(index)].block_id +
        " does not exist: stripe " + wanted.stripe.stripe_id + " ends before it; leave it out");
  }
  return lengths;
}

// The code, as far as it matters to bytes from `offset` on: blocks that end before are zero there.
absl::StatusOr<std::shared_ptr<const ErasureCode>> CodeFrom(
    uint64_t offset, const Stripe& stripe, std::shared_ptr<const ErasureCode> code) {
  std::vector<int> zero_blocks;
  for (int i = 0; i < code->n(); ++i) {
    if (stripe.BytesOf(i) <= offset) zero_blocks.push_back(i);
  }
  if (zero_blocks.empty()) return code;
  return ShortenedCode::Create(std::move(code), zero_blocks);
}

size_t PlaceIn(const std::vector<std::string>& order, const std::string& node) {
  return static_cast<size_t>(std::find(order.begin(), order.end(), node) - order.begin());
}

}  // namespace

bool IsUnfitTarget(const absl::Status& status) {
  return status.GetPayload(kUnfitTarget).has_value();
}

absl::StatusOr<Verification> VerificationNamed(const std::string& name) {
  if (name == "none") return Verification::kNone;
  if (name == "parity") return Verification::kParity;
  if (name == "locate") return Verification::kLocate;
  return absl::InvalidArgumentError("unknown verification '" + name +
                                    "'; known are none, parity, locate");
}

absl::StatusOr<SliceGrid> RepairPlanner::GridFor(const RepairRequest& request,
                                                 const std::vector<uint64_t>& block_lengths) const {
  const uint64_t block_bytes = *absl::c_max_element(block_lengths);
  if (request.offset >= block_bytes || request.bytes > block_bytes - request.offset) {
    return absl::InvalidArgumentError(
        (request.bytes == 0 ? "the range"
                            : "the range of " + std::to_string(request.bytes) + " bytes") +
        " from byte " + std::to_string(request.offset) + " is not within the block's " +
        std::to_string(block_bytes) + " bytes");
  }
  SliceGrid grid;
  grid.offset = request.offset;
  grid.bytes = request.bytes == 0 ? block_bytes - request.offset : request.bytes;
  grid.slice_bytes = request.slice_bytes == 0 ? options_.default_slice_bytes : request.slice_bytes;
  ECPIPE_RETURN_IF_ERROR(grid.Validate());
  return grid;
}

std::string RepairPlanner::Unreadable(const BlockPlace& place, const std::optional<NodeView>& view,
                                      TransportKind transport, const Refused& refused,
                                      Suspects suspects) const {
  if (place.node.empty()) return "no node is known to have it";
  if (std::string reason = Unfit(place.node, view, transport, refused); !reason.empty()) {
    return reason;
  }
  const std::string corrupt = corrupt_->Reason(place.block_id, place.node);
  if (!corrupt.empty()) return "it is corrupt: " + corrupt;
  if (suspects == Suspects::kRead) return "";
  const std::string suspicion = corrupt_->Suspicion(place.block_id, place.node);
  return suspicion.empty() ? "" : "it is called corrupt and not yet checked: " + suspicion;
}

WantedBlocks RepairPlanner::AtUsableReplicas(const RepairRequest& request,
                                             const WantedBlocks& wanted, const Refused& refused,
                                             Suspects suspects) {
  WantedBlocks placed = wanted;
  std::set<std::string> taken;
  for (size_t i = 0; i < wanted.replicas.size(); ++i) {
    // What is wanted is not read, unless it is read directly.
    const bool failed = absl::c_linear_search(wanted.indices, static_cast<int>(i));
    if (failed && request.scheme != kDirectScheme) continue;
    BlockPlace& place = placed.stripe.blocks[i];
    std::string usable;
    for (const std::string& node : wanted.replicas[i]) {
      const BlockPlace replica{place.block_id, node};
      if (!Unreadable(replica, nodes_->Find(node), request.transport, refused, suspects).empty()) {
        continue;
      }
      // A node that gives another block only if no other one has this.
      if (usable.empty() || taken.contains(usable)) usable = node;
      if (!taken.contains(usable)) break;
    }
    if (usable.empty()) continue;
    place = {place.block_id, usable};
    taken.insert(usable);
  }
  return placed;
}

absl::Status RepairPlanner::FindSurvivors(const RepairRequest& request, const WantedBlocks& wanted,
                                          const Refused& refused, Suspects suspects,
                                          PlanRequest* plan_request) {
  const std::vector<BlockPlace>& blocks = wanted.stripe.blocks;
  std::string reasons;
  std::vector<Candidate> candidates;
  std::set<std::string> known;    // nodes of the stripe, each once
  std::set<std::string> helping;  // nodes of candidates
  const bool direct = request.scheme == kDirectScheme;
  for (int i = 0; i < static_cast<int>(blocks.size()); ++i) {
    const BlockPlace& place = blocks[static_cast<size_t>(i)];
    const std::optional<NodeView> view = nodes_->Find(place.node);
    if (view && known.insert(place.node).second) {
      plan_request->cluster.nodes.push_back({.node = place.node, .rack = view->record.rack});
    }
    if (absl::c_linear_search(wanted.indices, i) != direct) continue;
    // Known without being read.
    if (wanted.stripe.BytesOf(i) <= plan_request->grid.offset) continue;
    const std::string reason = Unreadable(place, view, request.transport, refused, suspects);
    if (reason.empty()) {
      const bool second = !helping.insert(place.node).second;
      candidates.push_back({i, !corrupt_->Suspicion(place.block_id, place.node).empty(), second,
                            PlaceIn(request.helper_order, place.node),
                            view->record.active_sessions});
    } else {
      const std::string where = place.node.empty() ? "" : " on " + place.node;
      reasons += "; " + place.block_id + where + ": " + reason;
    }
  }
  const auto refuse = [&](const std::string& what) {
    return absl::FailedPreconditionError(Named(request.block_ids) + " cannot be " + what + reasons);
  };
  if (direct) {
    if (candidates.empty()) return refuse("read directly");
    if (request.verify.value_or(Verification::kNone) != Verification::kNone) {
      return absl::InvalidArgumentError(
          "scheme direct reads one block, so parity cannot verify it; use another scheme, or "
          "verify none");
    }
    plan_request->equation = {wanted.indices, {{wanted.indices[0], {1}}}};
    return absl::OkStatus();
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return std::tuple(a.suspect, a.second, a.wish, a.load) <
                            std::tuple(b.suspect, b.second, b.wish, b.load);
                   });
  std::vector<int> survivors;
  for (const Candidate& candidate : candidates) survivors.push_back(candidate.block_index);
  const ErasureCode& code = *plan_request->code;
  absl::StatusOr<RepairEquation> equation = code.Equation(wanted.indices, survivors);
  if (absl::IsFailedPrecondition(equation.status())) {
    std::vector<std::string> names;
    for (const int survivor : survivors) {
      names.push_back(wanted.stripe.blocks[static_cast<size_t>(survivor)].block_id);
    }
    return refuse("repaired now: " + WhyUndetermined(code, names));
  }
  ECPIPE_ASSIGN_OR_RETURN(plan_request->equation, std::move(equation));
  plan_request->survivors = std::move(survivors);
  plan_request->paths = PathsThrough(request.paths, *plan_request);
  const absl::Status verified = AddVerification(
      request, suspects == Suspects::kRead ? Verification::kParity : Verification::kNone,
      plan_request);
  return absl::Status(verified.code(), std::string(verified.message()) +
                                           (absl::IsFailedPrecondition(verified) ? reasons : ""));
}

absl::Status RepairPlanner::AddVerification(const RepairRequest& request, Verification least,
                                            PlanRequest* plan_request) {
  const Verification verify =
      std::max(request.verify.value_or(options_.default_verification), least);
  if (verify == Verification::kNone) return absl::OkStatus();
  const auto add = [&](Verification rows) {
    return AddCheckRows(*plan_request->code, plan_request->survivors, static_cast<uint32_t>(rows),
                        &plan_request->equation);
  };
  absl::Status added = add(verify);
  // An attempt that goes on without the block that was located has a survivor fewer.
  if (absl::IsFailedPrecondition(added) && request.left && verify == Verification::kLocate) {
    added = add(Verification::kParity);
  }
  ECPIPE_RETURN_IF_ERROR(Annotate(added, Named(request.block_ids)));
  // Schemes that choose helpers would ask the code for equations without check rows.
  plan_request->code = nullptr;
  return absl::OkStatus();
}

std::string RepairPlanner::UnfitHost(const std::string& host, const std::optional<NodeView>& view,
                                     int block_index, TransportKind transport,
                                     const WantedBlocks& wanted, const Refused& refused,
                                     const PlanRequest& plan_request) {
  if (absl::c_linear_search(plan_request.requestors, host)) {
    return "it takes another block of this repair";
  }
  for (int i = 0; i < static_cast<int>(wanted.stripe.blocks.size()); ++i) {
    // Also one that this repair moves elsewhere: that may come later, or fail.
    if (i != block_index && wanted.stripe.blocks[static_cast<size_t>(i)].node == host) {
      return "it already has a block of the stripe";
    }
  }
  if (view && view->kept_out != KeptOut::kNone) {
    return std::string("it is ") + KeptOutName(view->kept_out) +
           ", so it takes no blocks (ecpipe nodes readmit)";
  }
  return Unfit(host, view, transport, refused);
}

absl::Status RepairPlanner::FindRequestors(const RepairRequest& request, const WantedBlocks& wanted,
                                           const Refused& refused, uint64_t bytes,
                                           PlanRequest* plan_request) {
  if (request.hosts.empty()) {
    const std::string name = RequestorName(request.requestor);
    plan_request->requestors.assign(wanted.indices.size(), name);
    plan_request->cluster.nodes.push_back(
        {.node = name,
         .rack = request.requestor_rack,
         .up_bytes_per_second = request.requestor_bytes_per_second,
         .down_bytes_per_second = request.requestor_bytes_per_second});
    return absl::OkStatus();
  }
  if (request.hosts.size() != wanted.indices.size()) {
    return absl::InvalidArgumentError("there are " + std::to_string(request.hosts.size()) +
                                      " nodes for " + std::to_string(wanted.indices.size()) +
                                      " blocks; name one node for each block");
  }
  if (!wanted.replicas.empty()) {
    return absl::InvalidArgumentError(
        "ECPipe cannot store these blocks on nodes: their storage system stores its blocks itself");
  }
  const bool read = request.scheme == kDirectScheme && !request.copy;
  if (bytes != wanted.stripe.block_bytes || read) {
    return absl::InvalidArgumentError(
        "a node can store only whole rebuilt blocks; leave out the range and scheme direct");
  }
  for (size_t i = 0; i < request.hosts.size(); ++i) {
    const std::string& host = request.hosts[i];
    // Looked up once: an operator may have the node forgotten at any time.
    const std::optional<NodeView> view = nodes_->Find(host);
    const std::string reason =
        UnfitHost(host, view, wanted.indices[i], request.transport, wanted, refused, *plan_request);
    if (!reason.empty()) {
      absl::Status unfit = absl::FailedPreconditionError("node " + host + " cannot take block " +
                                                         request.block_ids[i] + ": " + reason);
      unfit.SetPayload(kUnfitTarget, absl::Cord());
      return unfit;
    }
    plan_request->requestors.push_back(host);
    plan_request->cluster.nodes.push_back({.node = host, .rack = view->record.rack});
  }
  return absl::OkStatus();
}

absl::StatusOr<PlanRequest> RepairPlanner::MakeRequest(const RepairRequest& request,
                                                       const WantedBlocks& wanted,
                                                       const Refused& refused,
                                                       PlannedRepair* planned) {
  if (MayReadDirectly(request, wanted)) {
    RepairRequest direct = request;
    direct.scheme = kDirectScheme;
    absl::StatusOr<PlanRequest> read =
        MakeRequestWith(Suspects::kLeftOut, direct, wanted, refused, planned);
    if (read.ok()) return read;
  }
  absl::StatusOr<PlanRequest> made =
      MakeRequestWith(Suspects::kLeftOut, request, wanted, refused, planned);
  // Read directly, no parity would prove it right.
  if (!absl::IsFailedPrecondition(made.status()) || request.scheme == kDirectScheme) return made;
  if (!HasSuspects(wanted)) return made;
  absl::StatusOr<PlanRequest> with =
      MakeRequestWith(Suspects::kRead, request, wanted, refused, planned);
  return with.ok() ? std::move(with) : std::move(made);
}

bool RepairPlanner::MayReadDirectly(const RepairRequest& request, const WantedBlocks& wanted) {
  const std::string& scheme = request.scheme.empty() ? options_.default_scheme : request.scheme;
  const Verification verify = request.verify.value_or(options_.default_verification);
  if (!request.prefer_direct || scheme != "auto" || wanted.indices.size() != 1 ||
      !request.hosts.empty() || verify != Verification::kNone) {
    return false;
  }
  // A later attempt that rebuilds goes on in this one's slices.
  const auto code = codes_.Get(wanted.stripe.code);
  return code.ok() && (*code)->layout().sub_blocks == 1;
}

bool RepairPlanner::HasSuspects(const WantedBlocks& wanted) const {
  for (size_t i = 0; i < wanted.stripe.blocks.size(); ++i) {
    const BlockPlace& place = wanted.stripe.blocks[i];
    if (!corrupt_->Suspicion(place.block_id, place.node).empty()) return true;
    if (wanted.replicas.empty()) continue;
    for (const std::string& node : wanted.replicas[i]) {
      if (!corrupt_->Suspicion(place.block_id, node).empty()) return true;
    }
  }
  return false;
}

absl::StatusOr<PlanRequest> RepairPlanner::MakeRequestWith(Suspects suspects,
                                                           const RepairRequest& request,
                                                           const WantedBlocks& wanted,
                                                           const Refused& refused,
                                                           PlannedRepair* planned) {
  std::optional<WantedBlocks> at_replicas;
  if (!wanted.replicas.empty()) at_replicas = AtUsableReplicas(request, wanted, refused, suspects);
  const WantedBlocks& placed = at_replicas ? *at_replicas : wanted;
  const Stripe& stripe = placed.stripe;
  ECPIPE_ASSIGN_OR_RETURN(std::shared_ptr<const ErasureCode> code, codes_.Get(stripe.code));
  if (static_cast<int>(stripe.blocks.size()) != code->n()) {
    return absl::DataLossError("stripe " + stripe.stripe_id + " has " +
                               std::to_string(stripe.blocks.size()) + " blocks, but its code " +
                               code->name() + " needs " + std::to_string(code->n()));
  }
  ECPIPE_ASSIGN_OR_RETURN(planned->block_lengths, LengthsOf(placed));
  ECPIPE_ASSIGN_OR_RETURN(const SliceGrid range, GridFor(request, planned->block_lengths));
  ECPIPE_ASSIGN_OR_RETURN(code, CodeFrom(range.offset, stripe, std::move(code)));
  planned->stripe = stripe;
  planned->offset = range.offset;
  planned->bytes = range.bytes;
  PlanRequest plan_request;
  plan_request.scheme = request.scheme.empty() ? options_.default_scheme : request.scheme;
  plan_request.code = code;
  plan_request.grid = range;
  plan_request.cluster.default_bytes_per_second = options_.link_bytes_per_second;
  plan_request.cluster.rack_bytes_per_second = options_.rack_bytes_per_second;
  for (const BlockPlace& place : stripe.blocks) plan_request.block_nodes.push_back(place.node);
  ECPIPE_RETURN_IF_ERROR(FindRequestors(request, placed, refused, range.bytes, &plan_request));
  ECPIPE_RETURN_IF_ERROR(FindSurvivors(request, placed, refused, suspects, &plan_request));
  plan_request.grid = OverSubBlocks(range, plan_request.equation.layout);
  links_->FillIn(&plan_request.cluster);
  for (PlanNode& node : plan_request.cluster.nodes) {
    const auto shares = request.link_shares.find(node.node);
    if (shares != request.link_shares.end()) node.shares = shares->second;
  }
  Limit(request.seen, &plan_request.cluster);
  return plan_request;
}

absl::Status RepairPlanner::Run(const PlanRequest& request, const std::optional<SlicesLeft>& left,
                                PlannedRepair* planned) {
  ECPIPE_ASSIGN_OR_RETURN(planned->plan, ChoosePlan(request));
  if (left) ECPIPE_RETURN_IF_ERROR(KeepMissing(*left, &planned->plan));
  planned->cost = EstimateCost(planned->plan, request.cluster);
  for (const PlanNode& node : request.cluster.nodes) planned->racks[node.node] = node.rack;
  return absl::OkStatus();
}

absl::StatusOr<bool> RepairPlanner::GiveWay(const RepairPlan& plan, RepairRequest* request,
                                            Refused* refused) {
  for (const PlanLane& lane : plan.lanes) {
    for (const PlanHop& hop : lane.hops) {
      const Features needs = NeedsOf(plan, hop);
      if (needs.empty()) continue;
      const std::optional<NodeView> view = nodes_->Find(hop.node);
      const Features lacks = needs.Without(view ? view->record.features : request->features);
      if (lacks.empty()) continue;
      if (lacks.Has(Feature::kCheckRows) && !request->verify) {
        request->verify = Verification::kNone;  // nobody asked for it
        return true;
      }
      const std::string what = absl::StrJoin(FeatureNames(lacks), ", ");
      if (view) {
        refused->emplace(hop.node, "the version of its helper lacks " + what);
        return true;
      }
      if ((request->scheme.empty() ? options_.default_scheme : request->scheme) == "auto") {
        request->scheme = "rp";  // its requestor only adds
        return true;
      }
      return absl::FailedPreconditionError("the requestor's version lacks " + what +
                                           ", which this repair by " + plan.scheme +
                                           " needs; use a newer one, or another scheme");
    }
  }
  return false;
}

// Ends: each turn refuses another node, or gives up the default verification or the choice of the
// scheme.
absl::StatusOr<PlannedRepair> RepairPlanner::PlanForAll(RepairRequest request,
                                                        const WantedBlocks& wanted, Refused refused,
                                                        PlanRequest* used) {
  while (true) {
    PlannedRepair planned;
    ECPIPE_ASSIGN_OR_RETURN(*used, MakeRequest(request, wanted, refused, &planned));
    ECPIPE_RETURN_IF_ERROR(Run(*used, request.left, &planned));
    ECPIPE_ASSIGN_OR_RETURN(const bool again, GiveWay(planned.plan, &request, &refused));
    if (!again) return planned;
  }
}

absl::StatusOr<PlannedRepair> RepairPlanner::Plan(const RepairRequest& request,
                                                  const WantedBlocks& wanted,
                                                  const Refused& refused) {
  PlanRequest used;
  return PlanForAll(request, wanted, refused, &used);
}

absl::StatusOr<PlannedRepair> RepairPlanner::Explain(const RepairRequest& request,
                                                     const WantedBlocks& wanted) {
  PlanRequest used;
  ECPIPE_ASSIGN_OR_RETURN(PlannedRepair planned, PlanForAll(request, wanted, {}, &used));
  if (planned.plan.scheme != kDirectScheme) {
    ECPIPE_ASSIGN_OR_RETURN(planned.predictions, PredictAll(used));
  }
  return planned;
}

}  // namespace ecpipe
