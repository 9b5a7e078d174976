// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/facts_proto.h"

#include <gtest/gtest.h>

#include "model/systems/hdfs_group.h"

namespace ecpipe::facts_proto_test {
namespace {

StripeFacts Facts() {
  const HdfsGroup group{.pool = "BP-1",
                        .group = INT64_MIN,
                        .stamp = 1001,
                        .bytes = 13'300'001,
                        .codec = "rs-legacy",
                        .data = 6,
                        .parity = 3,
                        .cell_bytes = 1 << 20,
                        .sources = {{0, "dn-1"}, {8, "dn-2"}}};
  return group.Facts();
}

TEST(FactsProto, SurviveTheTrip) {
  EXPECT_EQ(FactsFromProto(FactsToProto(Facts())).value(), Facts());
}

TEST(FactsProto, NumbersThatDoNotFitAreRefused) {
  const auto refused = [](void (*change)(v1::StripeFacts*)) {
    v1::StripeFacts proto = FactsToProto(Facts());
    change(&proto);
    return absl::IsInvalidArgument(FactsFromProto(proto).status());
  };
  EXPECT_TRUE(
      refused([](v1::StripeFacts* facts) { facts->mutable_blocks(8)->set_bytes(UINT64_MAX); }));
  EXPECT_TRUE(refused([](v1::StripeFacts* facts) { facts->clear_blocks(); }));
  EXPECT_TRUE(
      refused([](v1::StripeFacts* facts) { facts->mutable_sources(0)->set_index(1u << 31); }));
  EXPECT_TRUE(refused([](v1::StripeFacts* facts) { facts->clear_stripe_id(); }));
  EXPECT_FALSE(refused([](v1::StripeFacts*) {}));
}

}  // namespace
}  // namespace ecpipe::facts_proto_test
