// SPDX-License-Identifier: Apache-2.0
// Who may make which call of the control plane. The roles come from the caller's certificate; a
// server without TLS knows no callers and asks nothing.
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/peer_identity.h"

namespace grpc {
class AuthMetadataProcessor;
}  // namespace grpc

namespace ecpipe {

// Whether a caller with this identity may make the call "/package.Service/Method".
// PERMISSION_DENIED names the call, the roles that may make it and those of the caller. Calls that
// the table does not have are nobody's.
absl::Status CheckAccess(const std::string& call, const PeerIdentity& caller);

// Makes a server do that for each call, before its arguments are looked at.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessCheck();

// The caller's identity, from its certificate; none without TLS, nor without a context: then the
// call comes from this process, since gRPC gives every call one.
std::optional<PeerIdentity> CallerOf(const grpc::ServerContext* context);

// A node speaks for itself only: PERMISSION_DENIED unless the caller's certificate is that of
// `node`. OK without TLS.
absl::Status CheckSpeaksFor(const grpc::ServerContext* context, const std::string& node);

// For calls of which some forms need more than the table says: PERMISSION_DENIED unless the caller
// has `role`; `what` is that form, for the message. OK without TLS.
absl::Status CheckHasRole(const grpc::ServerContext* context, Role role, const std::string& what);

}  // namespace ecpipe
