// SPDX-License-Identifier: Apache-2.0
#include "rpc/access.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "rpc/audit_log.h"
#include "rpc/caller_limits.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

using Roles = std::set<Role>;

// Which of a call's lines the audit log has.
enum class Audit { kAll, kFailures };
// Made over and over for each node, and while a part, a repair or a recovery runs; orders nothing.
constexpr Audit kRoutine = Audit::kFailures;

struct Rule {
  Roles who;
  Audit audit = Audit::kAll;
};

// The one place that says who may do what, and what of it is written down.
const std::map<std::string, Rule>& Table() {
  static const auto* const table = [] {
    const Roles everybody = {Role::kCoordinator, Role::kHelper, Role::kRequestor, Role::kOperator};
    const Roles helper = {Role::kHelper};
    const Roles readers = {Role::kRequestor, Role::kOperator};
    const Roles operators = {Role::kOperator};
    const Roles coordinator = {Role::kCoordinator};
    const std::string coordinator_service = "/ecpipe.v1.CoordinatorService/";
    const std::string helper_service = "/ecpipe.v1.HelperService/";
    const std::string daemon_service = "/ecpipe.v1.DaemonService/";
    const std::string doctor_service = "/ecpipe.v1.DoctorService/";
    return new std::map<std::string, Rule>{
        {coordinator_service + "Register", {helper}},
        {coordinator_service + "Heartbeat", {helper, kRoutine}},
        {coordinator_service + "ReportPart", {helper, kRoutine}},
        {coordinator_service + "ReportBlocks", {helper, kRoutine}},
        // With nodes that store the blocks: operators only, see coordinator_service.cc.
        {coordinator_service + "BeginRepair", {readers}},
        {coordinator_service + "CheckProgress", {readers, kRoutine}},
        {coordinator_service + "FinishRepair", {readers}},
        {coordinator_service + "GetRepair", {readers, kRoutine}},
        {coordinator_service + "ExplainRepair", {readers}},
        {coordinator_service + "ListSchemes", {readers}},
        {coordinator_service + "ListStripes", {readers}},
        {coordinator_service + "LocateBlock", {readers}},
        {coordinator_service + "GetFile", {readers}},
        {coordinator_service + "ListLinks", {readers}},
        // It shows the ids of all repairs, with which anybody could end them.
        {coordinator_service + "GetStatus", {operators}},
        {coordinator_service + "PutStripes", {operators}},
        {coordinator_service + "BeginRecovery", {operators}},
        {coordinator_service + "ChangeRecovery", {operators}},
        {coordinator_service + "ListRecoveries", {operators, kRoutine}},
        {coordinator_service + "DrainNode", {operators}},
        {coordinator_service + "MaintainNode", {operators}},
        {coordinator_service + "ReadmitNode", {operators}},
        {coordinator_service + "GetNodeLoss", {operators}},
        {coordinator_service + "ProbeLinks", {operators}},
        {coordinator_service + "GetLimits", {operators}},
        {coordinator_service + "SetLimits", {operators}},
        {coordinator_service + "ListCorruptBlocks", {operators}},
        {coordinator_service + "ClearCorruptBlock", {operators}},
        {coordinator_service + "CheckCorruptBlock", {operators}},
        {coordinator_service + "Backup", {operators}},
        {coordinator_service + "ListNodeBlocks", {operators}},
        {coordinator_service + "CheckBlocks", {operators}},
        {coordinator_service + "RemoveStripes", {operators}},
        {coordinator_service + "ForgetNode", {operators}},
        {coordinator_service + "ListExtraCopies", {operators}},
        {coordinator_service + "RemoveExtraCopies", {operators}},
        {coordinator_service + "DryRun", {operators}},
        {helper_service + "CheckBlock", {coordinator}},
        {helper_service + "StartPart", {coordinator}},
        {helper_service + "CancelRepair", {coordinator}},
        {helper_service + "GetPart", {coordinator, kRoutine}},
        {helper_service + "GetHelperStatus", {operators}},
        {helper_service + "FindBlocks", {coordinator}},
        {helper_service + "ListBlockFiles", {coordinator}},
        {helper_service + "RemoveBlockFiles", {coordinator}},
        {daemon_service + "GetConfig", {operators}},
        {doctor_service + "ExamineCluster", {operators}},
        // A helper dials what this call names, so it is the coordinator's alone.
        {doctor_service + "ExamineNode", {coordinator}},
        {"/grpc.health.v1.Health/Check", {everybody, kRoutine}},
        {"/grpc.health.v1.Health/Watch", {everybody, kRoutine}},
        {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", {operators}},
    };
  }();
  return *table;
}

PeerIdentity IdentityOf(const grpc::AuthContext& context) {
  std::vector<std::string> uris;
  for (const grpc::string_ref& uri : context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME)) {
    uris.emplace_back(uri.data(), uri.size());
  }
  return IdentityFromUris(uris);
}

std::string Holder(const PeerIdentity& caller) {
  return "the certificate of '" + caller.node + "' has " +
         (caller.roles.empty() ? "none" : RoleNames(caller.roles));
}

class AccessCheck : public grpc::AuthMetadataProcessor {
 public:
  AccessCheck(std::shared_ptr<TlsContext> tls, std::shared_ptr<AuditLog> audit,
              std::shared_ptr<CallerLimits> limits)
      : tls_(std::move(tls)), audit_(std::move(audit)), limits_(std::move(limits)) {}

  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    const auto path = metadata.find(":path");
    if (path == metadata.end()) return ToGrpc(absl::PermissionDeniedError("the call has no name"));
    const std::string call(path->second.data(), path->second.size());
    const PeerIdentity caller = IdentityOf(*context);
    absl::Status may = CheckAccess(call, caller);
    for (const grpc::string_ref& pem :
         context->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
      if (tls_->Revoked({pem.data(), pem.size()})) {
        may = absl::UnauthenticatedError("the certificate of '" + caller.node + "' is revoked");
      }
    }
    if (may.ok()) may = limits_->Admit(call, caller.node);
    if (!may.ok() && audit_ != nullptr) audit_->Write(CallerText(caller), "", call, "", may);
    return ToGrpc(may);
  }

 private:
  const std::shared_ptr<TlsContext> tls_;       // shared with the data plane
  const std::shared_ptr<AuditLog> audit_;       // shared with the server; may be null
  const std::shared_ptr<CallerLimits> limits_;  // shared with the server's calls
};

}  // namespace

absl::Status CheckAccess(const std::string& call, const PeerIdentity& caller) {
  const auto found = Table().find(call);
  if (found == Table().end()) {
    return absl::PermissionDeniedError("no role may call " + call);
  }
  const Roles& allowed = found->second.who;
  const bool may = std::any_of(caller.roles.begin(), caller.roles.end(),
                               [&](Role role) { return allowed.contains(role); });
  if (may) return absl::OkStatus();
  return absl::PermissionDeniedError(call + " needs one of the roles " + RoleNames(allowed) + "; " +
                                     Holder(caller));
}

bool IsOfDaemons(const std::string& call) {
  const auto found = Table().find(call);
  return found != Table().end() &&
         std::all_of(found->second.who.begin(), found->second.who.end(),
                     [](Role role) { return role == Role::kHelper || role == Role::kCoordinator; });
}

bool IsAudited(const std::string& call) {
  const auto found = Table().find(call);
  return found == Table().end() || found->second.audit == Audit::kAll;
}

std::vector<std::string> KnownCalls() {
  std::vector<std::string> calls;
  for (const auto& [call, rule] : Table()) calls.push_back(call);
  return calls;
}

std::shared_ptr<grpc::AuthMetadataProcessor> MakeAccessCheck(std::shared_ptr<TlsContext> tls,
                                                             std::shared_ptr<AuditLog> audit,
                                                             std::shared_ptr<CallerLimits> limits) {
  return std::make_shared<AccessCheck>(std::move(tls), std::move(audit), std::move(limits));
}

std::string CallerText(const std::optional<PeerIdentity>& caller) {
  if (!caller) return "-";
  return caller->node + " (" + RoleNames(caller->roles) + ")";
}

std::optional<PeerIdentity> CallerOf(const grpc::ServerContextBase* context) {
  if (context == nullptr) return std::nullopt;
  const std::shared_ptr<const grpc::AuthContext> auth = context->auth_context();
  const auto types = auth->FindPropertyValues(GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
  const std::string insecure = "insecure";
  const bool plain = types.size() == 1 && types[0] == insecure;
  if (plain) return std::nullopt;
  return IdentityOf(*auth);
}

absl::Status CheckSpeaksFor(const grpc::ServerContext* context, const std::string& node) {
  const std::optional<PeerIdentity> caller = CallerOf(context);
  if (!caller || (!node.empty() && caller->node == node)) return absl::OkStatus();
  return absl::PermissionDeniedError("only a certificate of '" + node +
                                     "' may speak for that node; the caller's is of '" +
                                     caller->node + "'");
}

absl::Status CheckSpeaksForStorage(const grpc::ServerContext* context,
                                   const std::string& storage_id) {
  const std::optional<PeerIdentity> caller = CallerOf(context);
  const bool any = !caller || storage_id.empty() || caller->storages.empty();
  if (any || caller->storages.contains(storage_id)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "the certificate of '" + caller->node + "' names storage ids, but not '" + storage_id +
      "'; make one with storage:" + storage_id + " (deploy/make-certs.sh)");
}

absl::Status CheckHasRole(const grpc::ServerContext* context, Role role, const std::string& what) {
  const std::optional<PeerIdentity> caller = CallerOf(context);
  if (!caller || caller->roles.contains(role)) return absl::OkStatus();
  return absl::PermissionDeniedError(what + " needs the role " + RoleName(role) + "; " +
                                     Holder(*caller));
}

}  // namespace ecpipe
