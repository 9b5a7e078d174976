// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/node_loss_proto.h"

#include <algorithm>

namespace ecpipe {
namespace {

void CountToProto(const BlockCount& count, v1::GetNodeLossResponse::Count* proto) {
  proto->set_blocks(count.blocks);
  proto->set_bytes(count.bytes);
}

BlockCount CountFromProto(const v1::GetNodeLossResponse::Count& proto) {
  return {proto.blocks(), proto.bytes()};
}

}  // namespace

v1::SourceFacts SourceFactsToProto(const SourceFacts& facts) {
  v1::SourceFacts proto;
  proto.set_configured(facts.configured);
  if (facts.age_seconds) proto.set_age_seconds(*facts.age_seconds);
  proto.set_groups(facts.groups);
  proto.set_last_error(facts.last_error);
  proto.set_safe_mode(facts.safe_mode);
  return proto;
}

SourceFacts SourceFactsFromProto(const v1::SourceFacts& proto) {
  SourceFacts facts;
  facts.configured = proto.configured();
  if (proto.has_age_seconds()) facts.age_seconds = proto.age_seconds();
  facts.groups = proto.groups();
  facts.last_error = proto.last_error();
  facts.safe_mode = proto.safe_mode();
  return facts;
}

void NodeLossToProto(const NodeLoss& node, v1::GetNodeLossResponse* proto) {
  proto->set_system(node.system);
  proto->set_state(node.state);
  proto->set_seconds_since_heartbeat(node.silent_seconds);
  proto->set_state_in_system(node.state_in_system);
  proto->set_helper_state(node.helper_state);
  proto->set_helper_silent_seconds(node.helper_silent_seconds);
  CountToProto(node.loss.lost, proto->mutable_lost());
  CountToProto(node.loss.rebuilt, proto->mutable_rebuilt());
  CountToProto(node.loss.gone, proto->mutable_gone());
  CountToProto(node.loss.outstanding, proto->mutable_outstanding());
  for (const uint64_t blocks : node.loss.by_missing) proto->add_by_missing(blocks);
  proto->set_of_unknown_groups(node.loss.of_unknown_groups);
  proto->set_beyond_repair(node.loss.beyond_repair);
  proto->set_repairs_running(node.loss.repairs_running);
  proto->set_report_age_seconds(node.report_age_seconds);
  proto->set_unreported_nodes(node.unreported_nodes);
  *proto->mutable_facts() = SourceFactsToProto(node.facts);
}

std::optional<NodeLoss> NodeLossFromProto(const std::string& node,
                                          const v1::GetNodeLossResponse& proto) {
  if (proto.system().empty()) return std::nullopt;
  NodeLoss loss;
  loss.node = node;
  loss.system = proto.system();
  loss.state = proto.state();
  loss.silent_seconds = proto.seconds_since_heartbeat();
  loss.state_in_system = proto.state_in_system();
  loss.helper_state = proto.helper_state();
  loss.helper_silent_seconds = proto.helper_silent_seconds();
  loss.loss.lost = CountFromProto(proto.lost());
  loss.loss.rebuilt = CountFromProto(proto.rebuilt());
  loss.loss.gone = CountFromProto(proto.gone());
  loss.loss.outstanding = CountFromProto(proto.outstanding());
  const int classes = std::min<int>(proto.by_missing_size(), loss.loss.by_missing.size());
  for (int i = 0; i < classes; ++i) {
    loss.loss.by_missing[static_cast<size_t>(i)] = proto.by_missing(i);
  }
  loss.loss.of_unknown_groups = proto.of_unknown_groups();
  loss.loss.beyond_repair = proto.beyond_repair();
  loss.loss.repairs_running = proto.repairs_running();
  loss.report_age_seconds = proto.report_age_seconds();
  loss.unreported_nodes = proto.unreported_nodes();
  loss.facts = SourceFactsFromProto(proto.facts());
  return loss;
}

}  // namespace ecpipe
