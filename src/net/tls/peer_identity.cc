// SPDX-License-Identifier: Apache-2.0
#include "net/tls/peer_identity.h"

#include <array>

namespace ecpipe {
namespace {

constexpr std::array<Role, 4> kRoles = {Role::kCoordinator, Role::kHelper, Role::kRequestor,
                                        Role::kOperator};
constexpr const char* kRolePrefix = "ecpipe:role:";
constexpr const char* kNodePrefix = "ecpipe:node:";
constexpr const char* kStoragePrefix = "ecpipe:storage:";

}  // namespace

std::string RoleName(Role role) {
  switch (role) {
    case Role::kCoordinator:
      return "coordinator";
    case Role::kHelper:
      return "helper";
    case Role::kRequestor:
      return "requestor";
    case Role::kOperator:
      return "operator";
  }
  return "";
}

std::string RoleNames(const std::set<Role>& roles) {
  std::string text;
  for (const Role role : roles) text += (text.empty() ? "" : ", ") + RoleName(role);
  return text;
}

PeerIdentity IdentityFromUris(const std::vector<std::string>& uris) {
  PeerIdentity identity;
  std::set<std::string> nodes;
  for (const std::string& uri : uris) {
    for (const Role role : kRoles) {
      if (uri == kRolePrefix + RoleName(role)) identity.roles.insert(role);
    }
    if (uri.rfind(kStoragePrefix, 0) == 0) {
      identity.storages.insert(uri.substr(std::string(kStoragePrefix).size()));
    }
    if (uri.rfind(kNodePrefix, 0) == 0) nodes.insert(uri.substr(std::string(kNodePrefix).size()));
  }
  if (nodes.size() == 1) identity.node = *nodes.begin();
  return identity;
}

}  // namespace ecpipe
