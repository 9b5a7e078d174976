// SPDX-License-Identifier: Apache-2.0
// The identity of a process, as its certificate states it: URIs among the certificate's alternative
// names:
//   ecpipe:role:helper   what it may do; several are allowed
//   ecpipe:node:node-7   which node it is, or the name of an operator or requestor
//   ecpipe:storage:UUID  for which node of a storage system it may speak; several are allowed
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
  std::string node;  // empty: the certificate names no node, or more than one
  std::set<std::string> storages;
};

// Ignores URIs of other programs, and unknown roles.
PeerIdentity IdentityFromUris(const std::vector<std::string>& uris);

}  // namespace ecpipe
