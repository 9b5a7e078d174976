// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/facts_proto.h"

#include <algorithm>

#include "base/status.h"

namespace ecpipe {
namespace {

// A number that no field may have stays one that Validate() refuses.
int SmallNumber(uint32_t value) {
  return static_cast<int>(std::min<uint32_t>(value, StripeFacts::kMaxBlocks + 1));
}

}  // namespace

std::vector<StripeFacts::Source> SourcesFromProto(
    const google::protobuf::RepeatedPtrField<v1::StripeFacts::Source>& proto) {
  std::vector<StripeFacts::Source> sources;
  for (const v1::StripeFacts::Source& source : proto) {
    sources.push_back({SmallNumber(source.index()), source.storage_id()});
  }
  return sources;
}

void SourcesToProto(const std::vector<StripeFacts::Source>& sources,
                    google::protobuf::RepeatedPtrField<v1::StripeFacts::Source>* proto) {
  for (const StripeFacts::Source& source : sources) {
    v1::StripeFacts::Source* added = proto->Add();
    added->set_index(static_cast<uint32_t>(source.index));
    added->set_storage_id(source.storage_id);
  }
}

v1::StripeFacts FactsToProto(const StripeFacts& facts) {
  v1::StripeFacts proto;
  proto.set_stripe_id(facts.stripe_id);
  proto.set_code(facts.code);
  for (const StripeFacts::Block& block : facts.blocks) {
    v1::StripeFacts::Block* added = proto.add_blocks();
    added->set_name(block.name);
    added->set_bytes(block.bytes);
  }
  SourcesToProto(facts.sources, proto.mutable_sources());
  return proto;
}

absl::StatusOr<StripeFacts> FactsFromProto(const v1::StripeFacts& proto) {
  StripeFacts facts{proto.stripe_id(), proto.code(), {}, SourcesFromProto(proto.sources())};
  for (const v1::StripeFacts::Block& block : proto.blocks()) {
    facts.blocks.push_back({block.name(), block.bytes()});
  }
  ECPIPE_RETURN_IF_ERROR(Annotate(facts.Validate(), "the facts of the stripe"));
  return facts;
}

}  // namespace ecpipe
