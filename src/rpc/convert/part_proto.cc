// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/part_proto.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "model/plan/features.h"

namespace ecpipe {
namespace {

// ecpipe::v1 lives inside our namespace: proto types are v1::X, domain types are X.
std::string BytesText(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
void EdgeToProto(const EdgeId& edge, const EdgeToken& token, const std::string& peer,
                 const std::vector<Row>& rows, v1::Edge* proto) {
  proto->set_from_hop(edge.from_hop);
  proto->set_output(edge.output);
  proto->set_token(token.data(), token.size());
  proto->set_peer_node(peer);
  for (const Row row : rows) proto->add_rows(row);
}

void HopToProto(const HopSpec& hop, v1::Hop* proto) {
  proto->set_lane(hop.lane);
  proto->set_hop(hop.hop);
  RunsToProto(hop.slices, proto->mutable_slices());
  for (const Row row : hop.rows) proto->add_rows(row);
  if (hop.block) {
    proto->mutable_block()->set_block_id(hop.block->block_id);
    proto->mutable_block()->set_bytes(hop.block->bytes);
    proto->mutable_block()->set_coefficients(BytesText(hop.block->coefficients));
    proto->mutable_block()->set_sha256(hop.block->sha256);
    for (const uint32_t sub_block : hop.block->sub_blocks) {
      proto->mutable_block()->add_sub_blocks(sub_block);
    }
  }
  for (const HopInput& input : hop.inputs) {
    v1::HopInput* out = proto->add_inputs();
    EdgeToProto(input.edge, input.token, input.node, input.rows, out->mutable_edge());
    out->set_address(input.address);
    out->set_coefficients(BytesText(input.coefficients));
  }
  for (const HopOutput& output : hop.outputs) {
    v1::Edge* out = proto->add_outputs();
    EdgeToProto(output.edge, output.token, output.node, output.rows, out);
    out->set_measured(output.measured);
  }
  for (const Row row : hop.stored_rows) proto->add_stored_rows(row);
}

void CheckToProto(const ParityCheck& check, v1::ParityCheck* proto) {
  proto->set_rows(check.rows);
  for (const ParityCheck::Source& source : check.sources) {
    v1::ParityCheck::Source* added = proto->add_sources();
    added->set_block_id(source.block_id);
    added->set_node_id(source.node);
    added->set_column(BytesText(source.column));
  }
}

// What remains of a part where a program reads it that does not know all of its fields.
v1::RepairPart AsOlderReads(v1::RepairPart read) {
  const auto lacks = [](Feature feature) { return !OwnFeatures().Has(feature); };
  if (!KnowsFeatures()) read.clear_needs();
  if (lacks(Feature::kSubBlocks)) read.clear_layout();
  if (lacks(Feature::kCheckRows)) read.clear_check();
  for (v1::Hop& hop : *read.mutable_hops()) {
    if (lacks(Feature::kSubBlocks) && hop.has_block()) hop.mutable_block()->clear_sub_blocks();
    if (!lacks(Feature::kRawRows)) continue;
    for (v1::HopInput& input : *hop.mutable_inputs()) input.clear_coefficients();
  }
  return read;
}

// The parts of an edge that its two ends share.
template <typename EndPoint>
absl::Status EdgeFromProto(const v1::Edge& proto, const RepairPart& part, uint32_t lane,
                           EndPoint* end) {
  if (proto.token().size() != end->token.size()) {
    return absl::InvalidArgumentError("a token is not 16 bytes long");
  }
  end->edge = {part.repair_id, part.attempt, lane, proto.from_hop(), proto.output()};
  std::copy(proto.token().begin(), proto.token().end(), end->token.begin());
  end->node = proto.peer_node();
  ECPIPE_ASSIGN_OR_RETURN(end->rows, RowsFromProto(proto.rows()));
  return absl::OkStatus();
}

absl::StatusOr<HopSpec> HopFromProto(const v1::Hop& proto, const RepairPart& part) {
  HopSpec hop;
  hop.lane = proto.lane();
  hop.hop = proto.hop();
  ECPIPE_ASSIGN_OR_RETURN(hop.slices, RunsFromProto(proto.slices(), part.grid.slice_count()));
  ECPIPE_ASSIGN_OR_RETURN(hop.rows, RowsFromProto(proto.rows()));
  if (proto.has_block()) {
    hop.block = LocalBlock{proto.block().block_id(), proto.block().bytes(),
                           BytesOf(proto.block().coefficients())};
    const auto& sub_blocks = proto.block().sub_blocks();
    hop.block->sha256 = proto.block().sha256();
    if (!sub_blocks.empty()) hop.block->sub_blocks.assign(sub_blocks.begin(), sub_blocks.end());
  }
  for (const v1::HopInput& input : proto.inputs()) {
    HopInput& added = hop.inputs.emplace_back();
    ECPIPE_RETURN_IF_ERROR(EdgeFromProto(input.edge(), part, hop.lane, &added));
    added.address = input.address();
    added.coefficients = BytesOf(input.coefficients());
  }
  for (const v1::Edge& output : proto.outputs()) {
    HopOutput& added = hop.outputs.emplace_back();
    ECPIPE_RETURN_IF_ERROR(EdgeFromProto(output, part, hop.lane, &added));
    added.measured = output.measured();
  }
  ECPIPE_ASSIGN_OR_RETURN(hop.stored_rows, RowsFromProto(proto.stored_rows()));
  return hop;
}

}  // namespace

v1::ChecksumKind ChecksumToProto(const ChecksumKind& kind) {
  using Type = ChecksumKind::Type;
  v1::ChecksumKind proto;
  proto.set_type(kind.type == Type::kCrc32    ? v1::ChecksumKind::TYPE_CRC32
                 : kind.type == Type::kCrc32c ? v1::ChecksumKind::TYPE_CRC32C
                                              : v1::ChecksumKind::TYPE_ADLER32);
  proto.set_bytes_per_checksum(kind.bytes_per_checksum);
  return proto;
}

std::optional<ChecksumKind> ChecksumFromProto(const v1::ChecksumKind& proto) {
  using Type = ChecksumKind::Type;
  if (proto.bytes_per_checksum() == 0) return std::nullopt;
  switch (proto.type()) {
    case v1::ChecksumKind::TYPE_CRC32:
      return ChecksumKind{Type::kCrc32, proto.bytes_per_checksum()};
    case v1::ChecksumKind::TYPE_CRC32C:
      return ChecksumKind{Type::kCrc32c, proto.bytes_per_checksum()};
    case v1::ChecksumKind::TYPE_ADLER32:
      return ChecksumKind{Type::kAdler32, proto.bytes_per_checksum()};
    default:
      return std::nullopt;
  }
}

v1::Transport TransportToProto(TransportKind kind) {
  return kind == TransportKind::kRedis ? v1::TRANSPORT_REDIS : v1::TRANSPORT_TCP;
}

absl::StatusOr<TransportKind> TransportFromProto(v1::Transport transport, TransportKind fallback) {
  switch (transport) {
    case v1::TRANSPORT_UNSPECIFIED:
      return fallback;
    case v1::TRANSPORT_TCP:
      return TransportKind::kTcp;
    case v1::TRANSPORT_REDIS:
      return TransportKind::kRedis;
    default:
      return absl::InvalidArgumentError("unknown transport " + std::to_string(transport));
  }
}

absl::StatusOr<std::vector<Row>> RowsFromProto(
    const google::protobuf::RepeatedField<uint32_t>& proto) {
  std::vector<Row> rows;
  for (const uint32_t row : proto) {
    if (row >= kMaxRows)
      return absl::InvalidArgumentError("row " + std::to_string(row) + " is over the limit");
    rows.push_back(static_cast<Row>(row));
  }
  return rows;
}

absl::StatusOr<LaneSlices> RunsFromProto(
    const google::protobuf::RepeatedPtrField<v1::SliceRun>& proto, uint32_t slice_count) {
  std::vector<SliceRun> runs;
  for (const v1::SliceRun& run : proto) runs.push_back({run.first(), run.count(), run.stride()});
  return LaneSlices::Create(std::move(runs), slice_count);
}

void RunsToProto(const LaneSlices& slices, google::protobuf::RepeatedPtrField<v1::SliceRun>* runs) {
  for (const SliceRun& run : slices.runs()) {
    v1::SliceRun* added = runs->Add();
    added->set_first(run.first);
    added->set_count(run.count);
    added->set_stride(run.stride);
  }
}

v1::RepairPart PartToProto(const RepairPart& part) {
  v1::RepairPart proto;
  proto.set_repair_id(part.repair_id);
  proto.set_attempt(part.attempt);
  proto.mutable_grid()->set_offset(part.grid.offset);
  proto.mutable_grid()->set_bytes(part.grid.bytes);
  proto.mutable_grid()->set_slice_bytes(part.grid.slice_bytes);
  proto.mutable_layout()->set_sub_blocks(part.layout.sub_blocks);
  proto.mutable_layout()->set_unit_bytes(part.layout.unit_bytes);
  proto.set_transport(TransportToProto(part.transport));
  proto.set_serial(part.serial);
  proto.set_probe(part.probe);
  proto.set_background(part.background);
  for (const HopSpec& hop : part.hops) HopToProto(hop, proto.add_hops());
  if (part.check.rows > 0) CheckToProto(part.check, proto.mutable_check());
  for (const std::string& sha256 : part.sha256) proto.add_sha256(sha256);
  for (const std::string& name : FeatureNames(part.needs)) proto.add_needs(name);
  for (const StoredBlock& block : part.stores) {
    v1::StoredBlock* added = proto.add_stores();
    added->set_row(block.row);
    added->set_block_id(block.block_id);
    added->set_bytes(block.bytes);
  }
  return proto;
}

absl::StatusOr<RepairPart> PartFromProto(const v1::RepairPart& sent) {
  v1::RepairPart older;
  if (ActsAsOlder()) older = AsOlderReads(sent);
  const v1::RepairPart& proto = ActsAsOlder() ? older : sent;
  RepairPart part;
  ECPIPE_ASSIGN_OR_RETURN(part.needs, NeedsNamed({proto.needs().begin(), proto.needs().end()}));
  part.repair_id = proto.repair_id();
  part.attempt = proto.attempt();
  part.grid = {proto.grid().offset(), proto.grid().bytes(), proto.grid().slice_bytes()};
  ECPIPE_RETURN_IF_ERROR(part.grid.Validate());
  if (proto.has_layout()) part.layout = {proto.layout().sub_blocks(), proto.layout().unit_bytes()};
  part.serial = proto.serial();
  part.probe = proto.probe();
  part.background = proto.background();
  if (proto.transport() == v1::TRANSPORT_UNSPECIFIED) {
    return absl::InvalidArgumentError("the part names no transport");
  }
  ECPIPE_ASSIGN_OR_RETURN(part.transport,
                          TransportFromProto(proto.transport(), TransportKind::kTcp));
  for (const v1::Hop& hop : proto.hops()) {
    ECPIPE_ASSIGN_OR_RETURN(HopSpec spec, HopFromProto(hop, part));
    part.hops.push_back(std::move(spec));
  }
  for (const v1::StoredBlock& block : proto.stores()) {
    if (block.row() >= kMaxRows)
      return absl::InvalidArgumentError("a stored row is over the limit");
    part.stores.push_back({static_cast<Row>(block.row()), block.block_id(), block.bytes()});
  }
  part.sha256 = {proto.sha256().begin(), proto.sha256().end()};
  part.check.rows = proto.check().rows();
  for (const v1::ParityCheck::Source& source : proto.check().sources()) {
    part.check.sources.push_back({.block_index = 0,
                                  .block_id = source.block_id(),
                                  .node = source.node_id(),
                                  .column = BytesOf(source.column())});
  }
  ECPIPE_RETURN_IF_ERROR(ValidatePart(part));
  return part;
}

}  // namespace ecpipe
