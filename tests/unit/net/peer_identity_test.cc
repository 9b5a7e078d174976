// SPDX-License-Identifier: Apache-2.0
#include "net/tls/peer_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::peer_identity_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PeerIdentity, RolesAndNodeComeFromTheirUris) {
  const PeerIdentity identity = IdentityFromUris(
      {"ecpipe:role:helper", "https://example.org", "ecpipe:node:node-7", "ecpipe:role:operator"});
  EXPECT_THAT(identity.roles, ElementsAre(Role::kHelper, Role::kOperator));
  EXPECT_EQ(identity.node, "node-7");
}

TEST(PeerIdentity, AllElseGivesNothing) {
  using namespace std::string_literals;
  for (const std::string& uri :
       {"ecpipe:role:"s, "ecpipe:role:Helper"s, "ecpipe:role:helper "s, "ecpipe:role:helper\0x"s,
        " ecpipe:role:helper"s, "spiffe:ecpipe:role:helper"s, "ecpipe:role:root"s, ""s}) {
    EXPECT_THAT(IdentityFromUris({uri}).roles, IsEmpty()) << uri;
  }
}

TEST(PeerIdentity, TwoNodesAreNone) {
  EXPECT_EQ(IdentityFromUris({"ecpipe:node:a", "ecpipe:node:b"}).node, "");
  EXPECT_EQ(IdentityFromUris({"ecpipe:node:a", "ecpipe:node:a"}).node, "a");
}

TEST(PeerIdentity, RolesAreNamed) {
  EXPECT_EQ(RoleNames({Role::kOperator, Role::kCoordinator}), "coordinator, operator");
  EXPECT_EQ(RoleNames({}), "");
}

}  // namespace
}  // namespace ecpipe::peer_identity_test
