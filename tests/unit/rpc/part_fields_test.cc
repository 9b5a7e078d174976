// SPDX-License-Identifier: Apache-2.0
// The rule that keeps versions apart: proto3 drops fields that it does not know, so each field of a
// part either was there from the first form on, or changes no byte where it is dropped, or has a
// feature that the part then needs. A new field fails this test until somebody has said which.
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "ecpipe/v1/plan.pb.h"
#include "model/plan/features.h"
#include "rpc/convert/part_proto.h"

namespace ecpipe::part_fields_test {
namespace {

constexpr char kFirst[] = "";           // in the first form of parts
constexpr char kChangesNoByte[] = "-";  // a check or a hint less, the same bytes

const std::map<std::string, std::string>& Known() {
  static const auto* const known = new std::map<std::string, std::string>{
      {"RepairPart.repair_id", kFirst},
      {"RepairPart.attempt", kFirst},
      {"RepairPart.grid", kFirst},
      {"RepairPart.transport", kFirst},
      {"RepairPart.hops", kFirst},
      {"RepairPart.stores", kFirst},
      {"RepairPart.serial", kChangesNoByte},
      {"RepairPart.probe", kFirst},
      {"RepairPart.layout", "sub-blocks"},
      {"RepairPart.check", "check-rows"},
      {"RepairPart.background", kChangesNoByte},
      {"RepairPart.sha256", kChangesNoByte},
      {"RepairPart.needs", kChangesNoByte},
      {"SliceGrid.offset", kFirst},
      {"SliceGrid.bytes", kFirst},
      {"SliceGrid.slice_bytes", kFirst},
      {"SliceRun.first", kFirst},
      {"SliceRun.count", kFirst},
      {"SliceRun.stride", kFirst},
      {"Edge.from_hop", kFirst},
      {"Edge.output", kFirst},
      {"Edge.token", kFirst},
      {"Edge.peer_node", kFirst},
      {"Edge.rows", kFirst},
      {"Edge.measured", kChangesNoByte},
      {"HopInput.edge", kFirst},
      {"HopInput.address", kFirst},
      {"HopInput.coefficients", "raw-rows"},
      {"LocalBlock.block_id", kFirst},
      {"LocalBlock.bytes", kFirst},
      {"LocalBlock.coefficients", kFirst},
      {"LocalBlock.sub_blocks", "sub-blocks"},
      {"LocalBlock.sha256", kChangesNoByte},
      {"BlockLayout.sub_blocks", "sub-blocks"},
      {"BlockLayout.unit_bytes", "sub-blocks"},
      {"Hop.lane", kFirst},
      {"Hop.hop", kFirst},
      {"Hop.slices", kFirst},
      {"Hop.rows", kFirst},
      {"Hop.block", kFirst},
      {"Hop.inputs", kFirst},
      {"Hop.outputs", kFirst},
      {"Hop.stored_rows", kFirst},
      {"StoredBlock.row", kFirst},
      {"StoredBlock.block_id", kFirst},
      {"StoredBlock.bytes", kFirst},
      {"ParityCheck.rows", "check-rows"},
      {"ParityCheck.sources", "check-rows"},
      {"Source.block_id", "check-rows"},
      {"Source.node_id", "check-rows"},
      {"Source.column", "check-rows"},
  };
  return *known;
}

void Collect(const google::protobuf::Descriptor* message, std::set<std::string>* fields) {
  for (int i = 0; i < message->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = message->field(i);
    if (!fields->insert(message->name() + "." + field->name()).second) continue;
    if (field->message_type() != nullptr) Collect(field->message_type(), fields);
  }
}

TEST(PartFields, EachSaysWhatBecomesOfBytesWithoutIt) {
  std::set<std::string> fields;
  Collect(v1::RepairPart::descriptor(), &fields);
  for (const std::string& field : fields) {
    EXPECT_TRUE(Known().contains(field))
        << field << " is new: give it a feature (src/model/plan/features.h), or say here why a "
        << "program that drops it makes the same bytes";
  }
  for (const auto& [field, feature] : Known()) {
    EXPECT_TRUE(fields.contains(field)) << field << " is gone";
    if (feature.empty() || feature == kChangesNoByte) continue;
    EXPECT_TRUE(NeedsNamed({feature}).ok()) << field;
  }
}

TEST(PartFields, APartThatNeedsWhatIsNotKnownIsRefused) {
  v1::RepairPart part;
  part.add_needs("of-the-future");
  const absl::Status refused = PartFromProto(part).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

}  // namespace
}  // namespace ecpipe::part_fields_test
