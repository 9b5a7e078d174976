// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/scheme_proto.h"

#include <gtest/gtest.h>

namespace ecpipe::scheme_proto_test {
namespace {

TEST(SchemeProto, SurvivesTheTrip) {
  const std::vector<SchemeInfo> schemes = {
      {"a", "repairs", "does it", "1 + k", "§1", 64, {"links", "racks"}},
      {"b", "direct", "does not", "1", "§2", 1, {}}};
  v1::ListSchemesResponse proto;
  SchemesToProto(schemes, &proto);
  EXPECT_EQ(SchemesFromProto(proto), schemes);
}

}  // namespace
}  // namespace ecpipe::scheme_proto_test
