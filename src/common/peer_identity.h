// SPDX-License-Identifier: Apache-2.0
// Who a certificate says that a process is. It is written in URIs among the certificate's
// alternative names:
//   ecpipe:role:helper   what it may do; several are allowed
//   ecpipe:node:node-7   which node it is, or the name of an operator or requestor
#pragma once

#include <set>
#include <string>
#include <vector>

namespace ecpipe {

enum class Role { kCoordinator, kHelper, kRequestor, kOperator };

// "coordinator", "helper", "requestor", "operator".
std::string RoleName(Role role);
// "coordinator, helper".
std::string RoleNames(const std::set<Role>& roles);

struct PeerIdentity {
  std::set<Role> roles;
  std::string node;  // empty: it names none, or more than one
};

// URIs that are not ours, and unknown roles, give nothing.
PeerIdentity IdentityFromUris(const std::vector<std::string>& uris);

}  // namespace ecpipe
