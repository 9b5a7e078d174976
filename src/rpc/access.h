// SPDX-License-Identifier: Apache-2.0
// Which roles may make which call of the control plane, and which of the calls the audit log has.
// The roles come from the caller's certificate. A server without TLS does not know its callers and
// allows every call.
#pragma once

#include <grpcpp/security/auth_context.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "net/tls/tls.h"

namespace grpc {
class AuthMetadataProcessor;
}  // namespace grpc

namespace ecpipe {

class AuditLog;
class CallerLimits;

// Whether a caller with this identity may make the call "/package.Service/Method".
// PERMISSION_DENIED names the call, the roles that may make it and those of the caller. No role may
// make a call that is not in the table.
absl::Status CheckAccess(const std::string& call, const PeerIdentity& caller);

// Whether only helpers, or only the coordinator, may make this call: the cluster lives by these.
bool IsOfDaemons(const std::string& call);

// Whether the audit log has a line for each such call. Not of those by which nodes, repairs and
// recoveries are followed: of them it has what fails. Calls that are not in the table are in it.
bool IsAudited(const std::string& call);

// All calls of the table, as CheckAccess takes them.
std::vector<std::string> KnownCalls();

// Makes a server check each call in this way, before it reads the arguments: also that the caller's
// certificate is not revoked, and that `limits` admits it. `audit`, which may be null, hears of
// each refusal.
std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessCheck(std::shared_ptr<TlsContext> tls,
                                                             std::shared_ptr<AuditLog> audit,
                                                             std::shared_ptr<CallerLimits> limits);

// Who a call came from, for logs: "node-7 (helper)", or "-" without TLS.
std::string CallerText(const std::optional<PeerIdentity>& caller);

// The caller's identity, from its certificate. Nothing without TLS, and nothing for a null context:
// then the call comes from this process, because gRPC gives every call a context.
std::optional<PeerIdentity> CallerOf(const grpc::ServerContextBase* context);

// For calls in which a node speaks for itself: PERMISSION_DENIED unless the caller's certificate is
// that of `node`. OK without TLS.
absl::Status CheckSpeaksFor(const grpc::ServerContext* context, const std::string& node);

// For a helper that says to be beside this node of a storage system: PERMISSION_DENIED if its
// certificate names storage ids and not this one. OK if it names none, for an empty name, and
// without TLS.
absl::Status CheckSpeaksForStorage(const grpc::ServerContext* context,
                                   const std::string& storage_id);

// For forms of a call that need another role than the table says: PERMISSION_DENIED unless the
// caller has `role`; `what` names the form in the message. OK without TLS.
absl::Status CheckHasRole(const grpc::ServerContext* context, Role role, const std::string& what);

}  // namespace ecpipe
