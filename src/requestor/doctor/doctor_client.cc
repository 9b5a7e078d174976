// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/doctor_client.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "ecpipe/v1/doctor.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/rpc_status.h"

namespace ecpipe {
namespace {

// Longer than the coordinator takes.
constexpr auto kExaminePatience = std::chrono::seconds(120);

// What a daemon tells is judged with what all others tell: no more is taken than a sound one has.
template <typename T>
std::span<const T* const> First(const google::protobuf::RepeatedPtrField<T>& all, size_t most) {
  return {all.data(), std::min(static_cast<size_t>(all.size()), most)};
}

TlsFacts TlsOf(const v1::TlsFacts& proto) {
  TlsFacts facts;
  for (const auto* der : First(proto.chain(), TlsFacts::kMostChain)) facts.chain.push_back(*der);
  for (const auto* ca : First(proto.trusted(), TlsFacts::kMostTrusted)) {
    facts.trusted.push_back(*ca);
  }
  facts.trusted_count =
      std::max(proto.trusted_count(), static_cast<uint32_t>(proto.trusted_size()));
  facts.refused_files = proto.refused_files();
  for (const auto* told : First(proto.lists(), TlsFacts::kMostLists)) {
    const v1::TlsFacts::RevocationList& each = *told;
    TlsFacts::RevocationList& list = facts.lists.emplace_back();
    list = {.issuer = each.issuer(), .issued = each.issued(), .due = {}, .revoked = each.revoked()};
    if (each.has_due()) list.due = each.due();
  }
  return facts;
}

FormatFacts FormatOf(const v1::FormatFacts& proto) {
  FormatFacts facts{.names = proto.names(),
                    .more = proto.more(),
                    .headers = proto.headers(),
                    .unreadable = {},
                    .unreadable_count = proto.unreadable_count(),
                    .foreign = {},
                    .foreign_count = proto.foreign_count(),
                    .wrong = proto.wrong(),
                    .error = proto.error()};
  for (const auto* misfit : First(proto.unreadable(), FormatFacts::kMostNamed)) {
    facts.unreadable.push_back({misfit->name(), misfit->what()});
  }
  for (const auto* misfit : First(proto.foreign(), FormatFacts::kMostNamed)) {
    facts.foreign.push_back({misfit->name(), misfit->what()});
  }
  return facts;
}

DaemonFacts DaemonOf(const v1::DaemonFacts& proto) {
  DaemonFacts facts{.version = proto.version(),
                    .certificate_end = {},
                    .open_descriptors = proto.open_descriptors(),
                    .max_descriptors = proto.max_descriptors(),
                    .tls = {}};
  if (proto.has_certificate_end()) facts.certificate_end = proto.certificate_end();
  if (proto.has_tls()) facts.tls = TlsOf(proto.tls());
  return facts;
}

DirectoryFacts DirectoryOf(const v1::DirectoryFacts& proto) {
  DirectoryFacts facts{.path = proto.path(),
                       .error = proto.error(),
                       .takes_blocks = proto.takes_blocks(),
                       .free_bytes = proto.free_bytes(),
                       .total_bytes = proto.total_bytes(),
                       .format = {}};
  if (proto.has_format()) facts.format = FormatOf(proto.format());
  return facts;
}

DialFacts DialsOf(const v1::DialFacts& proto) {
  DialFacts facts{.dialled = proto.dialled(),
                  .failed = proto.failed(),
                  .not_dialled = proto.not_dialled(),
                  .failures = {}};
  for (const v1::DialFacts::Failure& failure : proto.failures()) {
    facts.failures.push_back(
        {failure.node_id(), failure.port(), failure.address(), failure.error()});
  }
  return facts;
}

NodeFacts NodeOf(const v1::ExamineClusterResponse::Node& proto) {
  const v1::NodeExamination& examined = proto.examination();
  NodeFacts facts;
  facts.node = proto.node_id();
  facts.status = StatusFromWire(proto.status_code(), proto.status_message());
  facts.clock_ahead_seconds = proto.clock_ahead_seconds();
  facts.clock_uncertainty_seconds = proto.clock_uncertainty_seconds();
  facts.daemon = DaemonOf(examined.daemon());
  facts.store = examined.store();
  for (const v1::DirectoryFacts& root : examined.roots()) facts.roots.push_back(DirectoryOf(root));
  facts.dials = DialsOf(examined.dials());
  facts.features = {examined.features().begin(), examined.features().end()};
  return facts;
}

}  // namespace

absl::StatusOr<Examination> ExamineCluster(const std::string& coordinator,
                                           const std::shared_ptr<TlsContext>& tls) {
  const auto stub =
      v1::DoctorService::NewStub(MakeChannel(coordinator, RpcSecurity(tls), Role::kCoordinator));
  grpc::ClientContext context;
  SetTimeout(&context, kExaminePatience);
  v1::ExamineClusterResponse response;
  const grpc::Status status =
      stub->ExamineCluster(&context, v1::ExamineClusterRequest(), &response);
  // With TLS an older one refuses a call that its table of roles does not have.
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED ||
      (status.error_code() == grpc::StatusCode::PERMISSION_DENIED &&
       status.error_message().find("no role may call") != std::string::npos)) {
    return absl::UnimplementedError("coordinator " + coordinator + " is too old to be examined");
  }
  if (!status.ok()) return FromGrpc(status, "coordinator " + coordinator);
  Examination examination{.coordinator = DaemonOf(response.coordinator()),
                          .data_directory = DirectoryOf(response.data_directory()),
                          .dials = DialsOf(response.dials()),
                          .nodes = {},
                          .handshakes = {},
                          .handshakes_unknown = response.handshakes_unknown()};
  for (const auto& node : response.nodes()) examination.nodes.push_back(NodeOf(node));
  for (const v1::HandshakeFacts& handshake : response.handshakes()) {
    examination.handshakes.push_back({handshake.node_id(), handshake.coordinator_refuses(),
                                      handshake.helper_refuses(), handshake.no_handshake()});
  }
  return examination;
}

}  // namespace ecpipe
