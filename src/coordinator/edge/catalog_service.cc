// SPDX-License-Identifier: Apache-2.0
// CoordinatorService: the catalog, and nodes that are gone for good.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "base/bytes/size_text.h"
#include "base/bytes/utf8_text.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/edge/coordinator_service.h"
#include "coordinator/recovery/block_presence.h"
#include "model/block_id.h"
#include "rpc/access.h"
#include "rpc/convert/stripe_proto.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

constexpr int kMaxStripesInPut = 10'000;
constexpr uint32_t kMaxStripesInList = 1000;
constexpr int kStripesInPage = 1000;  // each has a block of the node, some have several
// Of a list of stripes: a client takes 64 MiB at most. The next call goes on after the last one.
constexpr size_t kMaxListedBytes = 16 << 20;
// What is counted of a node: a person waits, and more than this is "more than".
constexpr uint64_t kMostCounted = 1'000'000;
// A helper answers within a second, for as many blocks as it has looked for by then.
constexpr Duration kFindPatience = std::chrono::seconds(3);

// Everything that a repair will rely on is checked when the stripe is loaded.
absl::Status CheckStripe(const Stripe& stripe, CodeCache* codes) {
  const auto bad = [&](const std::string& what) {
    return absl::InvalidArgumentError("stripe " + QuotedText(stripe.stripe_id) + ": " + what);
  };
  if (absl::Status id = ValidateBlockId(stripe.stripe_id); !id.ok()) {
    return bad("its id is " + std::string(id.message()));
  }
  absl::StatusOr<std::shared_ptr<const ErasureCode>> code = codes->Get(stripe.code);
  if (!code.ok()) return bad(std::string(code.status().message()));
  if (static_cast<int>(stripe.blocks.size()) != (*code)->n()) {
    return bad("it has " + std::to_string(stripe.blocks.size()) + " blocks, but code " +
               (*code)->name() + " needs " + std::to_string((*code)->n()));
  }
  if (stripe.block_bytes == 0 || stripe.block_bytes > kMaxBlockBytes) {
    return bad("a block length of " + std::to_string(stripe.block_bytes) +
               " bytes is out of range: it needs 1 to " + std::to_string(kMaxBlockBytes) +
               " bytes");
  }
  if (!(*code)->layout().Fits(stripe.block_bytes)) {
    return bad("the length of a block of code " + (*code)->name() + " must be a multiple of " +
               std::to_string((*code)->layout().group_bytes()) + " bytes, not " +
               std::to_string(stripe.block_bytes));
  }
  for (const BlockPlace& place : stripe.blocks) {
    if (absl::Status id = ValidateBlockId(place.block_id); !id.ok()) {
      return bad(std::string(id.message()));
    }
    if (place.node.empty()) return bad("block " + place.block_id + " names no node");
    if (absl::Status node = ValidateBlockId(place.node); !node.ok()) {
      return bad("the node of block " + place.block_id + ", " + QuotedText(place.node) + ", is " +
                 std::string(node.message()));
    }
  }
  return absl::OkStatus();
}

v1::CheckBlocksResponse::Verdict VerdictOf(Presence presence) {
  switch (presence) {
    case Presence::kThere:
      return v1::CheckBlocksResponse::VERDICT_THERE;
    case Presence::kMissing:
      return v1::CheckBlocksResponse::VERDICT_MISSING;
    case Presence::kWrongLength:
      return v1::CheckBlocksResponse::VERDICT_WRONG_LENGTH;
    case Presence::kUnreadable:
      return v1::CheckBlocksResponse::VERDICT_UNREADABLE;
    case Presence::kNotAsked:
      return v1::CheckBlocksResponse::VERDICT_NOT_ASKED;
    case Presence::kUnknown:
      return v1::CheckBlocksResponse::VERDICT_UNKNOWN;
    case Presence::kCorrupt:
      return v1::CheckBlocksResponse::VERDICT_CORRUPT;
  }
  return v1::CheckBlocksResponse::VERDICT_UNSPECIFIED;
}

void ToProto(const ExtraCopy& copy, v1::ExtraCopy* proto) {
  proto->set_block_id(copy.file.block_id);
  proto->set_bytes(copy.file.bytes);
  proto->set_version(CleanText(copy.file.version));
  proto->set_holder(copy.holder);
  proto->set_kept_because(CleanText(copy.kept_because));
  proto->set_ask_again(copy.ask_again);
  proto->set_age_seconds(copy.file.age_seconds);
}

}  // namespace

absl::StatusOr<std::vector<Stripe>> CoordinatorServiceImpl::StripesToPut(
    const v1::PutStripesRequest& request) {
  if (request.stripes_size() > kMaxStripesInPut) {
    return absl::InvalidArgumentError("at most " + std::to_string(kMaxStripesInPut) +
                                      " stripes in one call");
  }
  std::vector<Stripe> stripes;
  for (const v1::Stripe& proto : request.stripes()) {
    stripes.push_back(StripeFromProto(proto));
    ECPIPE_RETURN_IF_ERROR(CheckStripe(stripes.back(), &codes_));
  }
  return stripes;
}

absl::Status CoordinatorServiceImpl::CheckMayReplace(const std::vector<Stripe>& stripes) {
  std::string recovering;
  for (const RecoveryManager::Overview& recovery : recoveries_->Overviews()) {
    if (!Ended(recovery.state)) recovering = recovery.node;
  }
  const std::set<std::string> repairing = repairs_->RunningBlocks();
  if (recovering.empty() && repairing.empty()) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(const PutCounts counts, catalog_->TryPut(stripes));
  if (counts.replaced == 0) return absl::OkStatus();
  ECPIPE_RETURN_IF_ERROR(CheckNotRepaired(counts.were, repairing));
  if (recovering.empty()) return absl::OkStatus();
  // Blocks of theirs may have moved since the caller was told where they are.
  return absl::FailedPreconditionError(
      absl::StrFormat("%d of the stripes are in the catalog and differ, and the recovery of "
                      "node %s moves blocks; wait for its end, or end it with `ecpipe recovery "
                      "cancel`",
                      counts.replaced, recovering));
}

// Marks of blocks that are as they were stay: that the catalog is told so once more does not make
// them sound.
void CoordinatorServiceImpl::ForgetMarksOfChanged(const std::vector<Stripe>& were,
                                                  const std::vector<Stripe>& stripes) {
  std::map<std::string, const Stripe*> by_id;
  for (const Stripe& stripe : stripes) by_id[stripe.stripe_id] = &stripe;
  for (const Stripe& was : were) {
    const Stripe& now = *by_id.at(was.stripe_id);
    const bool same_code = was.code == now.code && was.block_bytes == now.block_bytes;
    for (const BlockPlace& place : was.blocks) {
      // Wherever it is said to be: a mark is of one node's copy.
      const bool stays = same_code && absl::c_any_of(now.blocks, [&place](const BlockPlace& other) {
                           return other.block_id == place.block_id && other.sha256 == place.sha256;
                         });
      if (!stays) repairs_->corrupt().Forget(place.block_id);
    }
  }
}

grpc::Status CoordinatorServiceImpl::PutStripes(grpc::ServerContext*,
                                                const v1::PutStripesRequest* request,
                                                v1::PutStripesResponse*) {
  const absl::StatusOr<std::vector<Stripe>> stripes = StripesToPut(*request);
  if (!stripes.ok()) return ToGrpc(stripes.status());
  MutexLock lock(&places_mutex_);
  // What begins between these two finds at its end that the stripe is another (MoveBlock).
  if (absl::Status may = CheckMayReplace(*stripes); !may.ok()) return ToGrpc(may);
  const absl::StatusOr<PutCounts> stored = catalog_->Put(*stripes);
  if (!stored.ok()) return ToGrpc(stored.status());
  ForgetMarksOfChanged(stored->were, *stripes);
  std::set<std::string> nodes;
  for (const Stripe& stripe : *stripes) {
    for (const BlockPlace& place : stripe.blocks) nodes.insert(place.node);
  }
  recoveries_->Loaded(nodes);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ListStripes(grpc::ServerContext*,
                                                 const v1::ListStripesRequest* request,
                                                 v1::ListStripesResponse* response) {
  const uint32_t limit =
      request->limit() == 0 ? 100 : std::min(request->limit(), kMaxStripesInList);
  const absl::StatusOr<StripePage> page =
      catalog_->List(request->after_stripe_id(), static_cast<int>(limit));
  if (!page.ok()) return ToGrpc(page.status());
  size_t bytes = 0;
  for (const Stripe& stripe : page->stripes) {
    v1::Stripe* const added = response->add_stripes();
    StripeToProto(stripe, added);
    bytes += added->ByteSizeLong();
    if (bytes >= kMaxListedBytes) break;
  }
  for (const std::string& id : page->damaged) response->add_damaged_stripe_id(CleanText(id));
  response->set_damaged_stripes(page->damaged_count);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::LocateBlock(grpc::ServerContext*,
                                                 const v1::LocateBlockRequest* request,
                                                 v1::LocateBlockResponse* response) {
  const absl::StatusOr<BlockLocation> location = catalog_->FindBlock(request->block_id());
  if (!location.ok()) return ToGrpc(location.status());
  StripeToProto(location->stripe, response->mutable_stripe());
  response->set_block_index(static_cast<uint32_t>(location->block_index));
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ListNodeBlocks(grpc::ServerContext*,
                                                    const v1::ListNodeBlocksRequest* request,
                                                    v1::ListNodeBlocksResponse* response) {
  const absl::StatusOr<NodeBlockPage> page =
      catalog_->ListNode(request->node_id(), request->page(), kStripesInPage);
  if (!page.ok()) return ToGrpc(page.status());
  for (const NodeBlock& block : page->blocks) response->add_block_ids(block.block_id);
  response->set_next(page->next);
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::CheckBlocks(grpc::ServerContext*,
                                                 const v1::CheckBlocksRequest* request,
                                                 v1::CheckBlocksResponse* response) {
  if (request->block_ids_size() > static_cast<int>(HelperGateway::kMaxBlocksInQuestion)) {
    return ToGrpc(absl::InvalidArgumentError(
        "at most " + std::to_string(HelperGateway::kMaxBlocksInQuestion) + " blocks in one call"));
  }
  const std::vector<CheckedBlock> checked =
      CheckPresence({request->block_ids().begin(), request->block_ids().end()},
                    {catalog_, &repairs_->nodes(), &repairs_->corrupt(), helpers_, &Clock::System(),
                     kFindPatience});
  for (const CheckedBlock& block : checked) {
    v1::CheckBlocksResponse::Block* const added = response->add_blocks();
    added->set_block_id(block.block_id);
    added->set_node_id(block.node);
    added->set_verdict(VerdictOf(block.presence));
    added->set_detail(CleanText(block.detail));
  }
  return grpc::Status::OK;
}

absl::StatusOr<std::vector<std::string>> CoordinatorServiceImpl::StripesToRemove(
    const v1::RemoveStripesRequest& request) {
  if (request.stripe_id_size() > kMaxStripesInPut) {
    return absl::InvalidArgumentError("at most " + std::to_string(kMaxStripesInPut) +
                                      " stripes in one call");
  }
  std::vector<std::string> stripes(request.stripe_id().begin(), request.stripe_id().end());
  std::sort(stripes.begin(), stripes.end());
  stripes.erase(std::unique(stripes.begin(), stripes.end()), stripes.end());
  return stripes;
}

absl::Status CoordinatorServiceImpl::CheckNotRepaired(const std::vector<Stripe>& stripes,
                                                      const std::set<std::string>& repairing) {
  for (const Stripe& stripe : stripes) {
    for (const BlockPlace& place : stripe.blocks) {
      if (!repairing.contains(place.block_id)) continue;
      return absl::FailedPreconditionError("block " + place.block_id + " of stripe " +
                                           stripe.stripe_id +
                                           " is being repaired; wait for the end of that, which "
                                           "`ecpipe repairs` shows");
    }
  }
  return absl::OkStatus();
}

absl::Status CoordinatorServiceImpl::CheckMayRemove(const std::vector<std::string>& stripes) {
  std::set<std::string> recovering;  // nodes
  for (const RecoveryManager::Overview& recovery : recoveries_->Overviews()) {
    if (!Ended(recovery.state)) recovering.insert(recovery.node);
  }
  ECPIPE_ASSIGN_OR_RETURN(const std::vector<Stripe> would, catalog_->TryRemove(stripes));
  ECPIPE_RETURN_IF_ERROR(CheckNotRepaired(would, repairs_->RunningBlocks()));
  for (const Stripe& stripe : would) {
    for (const BlockPlace& place : stripe.blocks) {
      if (!recovering.contains(place.node)) continue;
      return absl::FailedPreconditionError(
          "block " + place.block_id + " of stripe " + stripe.stripe_id + " is on node " +
          place.node +
          ", which is being recovered; wait for the end of the recovery, or end it "
          "with `ecpipe recovery cancel`");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Stripe>> CoordinatorServiceImpl::Remove(
    const std::vector<std::string>& stripes) {
  MutexLock lock(&places_mutex_);
  // A repair that begins between these two fails when its block is stored, and says why.
  ECPIPE_RETURN_IF_ERROR(CheckMayRemove(stripes));
  ECPIPE_ASSIGN_OR_RETURN(std::vector<Stripe> removed, catalog_->Remove(stripes));
  for (const Stripe& stripe : removed) {
    for (const BlockPlace& place : stripe.blocks) repairs_->corrupt().Forget(place.block_id);
  }
  return removed;
}

grpc::Status CoordinatorServiceImpl::RemoveStripes(grpc::ServerContext* context,
                                                   const v1::RemoveStripesRequest* request,
                                                   v1::RemoveStripesResponse*) {
  const absl::StatusOr<std::vector<std::string>> stripes = StripesToRemove(*request);
  if (!stripes.ok()) return ToGrpc(stripes.status());
  const absl::StatusOr<std::vector<Stripe>> removed = Remove(*stripes);
  if (!removed.ok()) return ToGrpc(removed.status());
  Log(LogLevel::kWarning, "catalog.removed",
      {{"caller", CallerText(CallerOf(context))},
       {"stripes", std::to_string(removed->size())},
       {"first", removed->empty() ? "" : removed->front().stripe_id}});
  return grpc::Status::OK;
}

absl::StatusOr<std::string> CoordinatorServiceImpl::BlocksOn(const std::string& node) {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  std::string page;
  do {
    ECPIPE_ASSIGN_OR_RETURN(const NodeBlockPage listed,
                            catalog_->ListNode(node, page, kStripesInPage));
    for (const NodeBlock& block : listed.blocks) {
      ++blocks;
      if (block.stripe.ok()) bytes += block.stripe->block_bytes;
    }
    page = listed.next;
  } while (!page.empty() && blocks < kMostCounted);
  return absl::StrFormat("%s%d blocks, %s", page.empty() ? "" : "more than ", blocks,
                         FormatSize(bytes));
}

absl::Status CoordinatorServiceImpl::CheckMayForget(const v1::ForgetNodeRequest& request) {
  const std::string& node = request.node_id();
  const std::optional<NodeView> known = repairs_->nodes().Find(node);
  if (!known && !limits_->limits().nodes.contains(node)) {
    return absl::NotFoundError("node " + node + " is not known");
  }
  for (const RecoveryManager::Overview& recovery : recoveries_->Overviews()) {
    if (recovery.node != node || Ended(recovery.state)) continue;
    return absl::FailedPreconditionError("node " + node +
                                         " is being recovered; wait for the end of that, or end "
                                         "it with `ecpipe recovery cancel`");
  }
  if (known && known->kept_out == KeptOut::kMaintenance) {
    return absl::FailedPreconditionError("node " + node +
                                         " is in maintenance; end that first with `ecpipe recovery "
                                         "cancel` (`ecpipe recovery list` has its number)");
  }
  if (request.force()) return absl::OkStatus();
  if (known && known->state != NodeState::kDead) {
    return absl::FailedPreconditionError("node " + node + " is " + NodeStateName(known->state) +
                                         "; stop its helper first, or use --force");
  }
  ECPIPE_ASSIGN_OR_RETURN(const NodeBlockPage page, catalog_->ListNode(node, "", 1));
  if (page.blocks.empty()) return absl::OkStatus();
  ECPIPE_ASSIGN_OR_RETURN(const std::string blocks, BlocksOn(node));
  return absl::FailedPreconditionError("by the catalog node " + node + " alone has " + blocks +
                                       ", such as " + page.blocks.front().block_id +
                                       "; rebuild them with `ecpipe recover-node " + node +
                                       "` first, or use --force");
}

grpc::Status CoordinatorServiceImpl::ForgetNode(grpc::ServerContext* context,
                                                const v1::ForgetNodeRequest* request,
                                                v1::ForgetNodeResponse*) {
  if (absl::Status may = CheckMayForget(*request); !may.ok()) return ToGrpc(may);
  const std::string& node = request->node_id();
  if (limits_->limits().nodes.contains(node)) {
    if (absl::Status reset = limits_->Set(node, LimitsOfNode{}); !reset.ok()) return ToGrpc(reset);
  }
  // It may come back as another node of that name.
  const absl::Status readmitted = recoveries_->Readmit(node);
  if (!readmitted.ok() && !absl::IsNotFound(readmitted)) return ToGrpc(readmitted);
  repairs_->nodes().Forget(node);
  // Of one that the catalog still has blocks on, what was found there stays so.
  const absl::StatusOr<NodeBlockPage> still = catalog_->ListNode(node, "", 1);
  if (still.ok() && still->blocks.empty()) repairs_->corrupt().ForgetNode(node);
  Log(LogLevel::kWarning, "node.forgotten",
      {{"node", node}, {"caller", CallerText(CallerOf(context))}});
  return grpc::Status::OK;
}

grpc::Status CoordinatorServiceImpl::ListExtraCopies(grpc::ServerContext*,
                                                     const v1::ListExtraCopiesRequest* request,
                                                     v1::ListExtraCopiesResponse* response) {
  const absl::StatusOr<ExtraCopies::Page> page =
      extra_copies_->List(request->node_id(), request->page());
  if (!page.ok()) return ToGrpc(page.status());
  for (const ExtraCopy& copy : page->copies) ToProto(copy, response->add_copies());
  response->set_next(page->next);
  return grpc::Status::OK;
}

absl::StatusOr<std::vector<ExtraCopy>> CoordinatorServiceImpl::RemoveGoodCopies(
    const std::string& node, const std::vector<BlockFile>& files,
    const std::function<bool()>& gone) {
  // Without the lock: blocks are read. Remove() looks again who has them.
  ECPIPE_ASSIGN_OR_RETURN(const ExtraCopies::Comparison comparison,
                          extra_copies_->Compare(node, files, gone));
  if (gone()) return absl::CancelledError("whoever asked for it has gone; nothing was removed");
  MutexLock lock(&places_mutex_);
  return extra_copies_->Remove(node, files, comparison);
}

grpc::Status CoordinatorServiceImpl::RemoveExtraCopies(grpc::ServerContext* context,
                                                       const v1::RemoveExtraCopiesRequest* request,
                                                       v1::RemoveExtraCopiesResponse* response) {
  if (request->copies_size() > static_cast<int>(ExtraCopies::kMaxCopies)) {
    return ToGrpc(absl::InvalidArgumentError("at most " + std::to_string(ExtraCopies::kMaxCopies) +
                                             " copies in one call"));
  }
  std::vector<BlockFile> files;
  for (const v1::ExtraCopy& copy : request->copies()) {
    files.push_back({copy.block_id(), copy.bytes(), copy.version(), copy.age_seconds()});
  }
  const absl::StatusOr<std::vector<ExtraCopy>> copies =
      RemoveGoodCopies(request->node_id(), files,
                       [context] { return context != nullptr && context->IsCancelled(); });
  size_t removed = 0;
  if (copies.ok()) {
    for (const ExtraCopy& copy : *copies) {
      removed += copy.kept_because.empty() ? 1 : 0;
      ToProto(copy, response->add_copies());
    }
  }
  Log(LogLevel::kWarning, "copies.removed",
      {{"node", request->node_id()},
       {"caller", CallerText(CallerOf(context))},
       {"copies", std::to_string(removed)},
       {"status", copies.ok() ? "OK" : StatusText(copies.status())}});
  return ToGrpc(copies.status());
}

}  // namespace ecpipe
