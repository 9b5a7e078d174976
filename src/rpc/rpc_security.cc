// SPDX-License-Identifier: Apache-2.0
#include "rpc/rpc_security.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <string>
#include <vector>

#include "rpc/access.h"

namespace ecpipe {
namespace {

namespace tls = grpc::experimental;

// Looks at the server's role instead of its host name: nodes move, and have several addresses.
class RoleVerifier : public tls::ExternalCertificateVerifier {
 public:
  // `node`: that the server must be; empty: any.
  RoleVerifier(Role wanted, std::string node, std::shared_ptr<TlsContext> tls)
      : wanted_(wanted), node_(std::move(node)), tls_(std::move(tls)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    std::vector<std::string> uris;
    for (const grpc::string_ref& uri : request->uri_names()) {
      uris.emplace_back(uri.data(), uri.size());
    }
    const PeerIdentity peer = IdentityFromUris(uris);
    *status =
        peer.roles.contains(wanted_)
            ? grpc::Status::OK
            : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                           "the server's certificate lacks the role " + RoleName(wanted_) +
                               "; it has " + (peer.roles.empty() ? "none" : RoleNames(peer.roles)));
    if (status->ok() && !node_.empty() && peer.node != node_) {
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                             "the server's certificate is of node '" + peer.node + "', but node '" +
                                 node_ + "' was expected");
    }
    if (status->ok() && tls_->Revoked({request->peer_cert().data(), request->peer_cert().size()})) {
      *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                             "the certificate of '" + peer.node + "' is revoked");
    }
    return true;
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const Role wanted_;
  const std::string node_;
  const std::shared_ptr<TlsContext> tls_;  // shared with the data plane
};

}  // namespace

struct RpcSecurity::Files {
  explicit Files(const TlsFiles& files)
      : provider(std::make_shared<tls::FileWatcherCertificateProvider>(
            files.key, files.certificate, files.ca, kLookEverySeconds)) {}

  static constexpr unsigned kLookEverySeconds = 1;
  const std::shared_ptr<tls::FileWatcherCertificateProvider> provider;
};

RpcSecurity::RpcSecurity(std::shared_ptr<TlsContext> tls, std::shared_ptr<AuditLog> audit)
    : tls_(std::move(tls)),
      audit_(std::move(audit)),
      files_(tls_ == nullptr ? nullptr : std::make_unique<const Files>(tls_->files())) {}
RpcSecurity::~RpcSecurity() = default;

std::shared_ptr<grpc::ServerCredentials> RpcSecurity::ForServer(
    std::shared_ptr<CallerLimits> limits) const {
  if (files_ == nullptr) return grpc::InsecureServerCredentials();
  tls::TlsServerCredentialsOptions options(files_->provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  std::shared_ptr<grpc::ServerCredentials> credentials = tls::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(MakeAccessCheck(tls_, audit_, std::move(limits)));
  return credentials;
}

std::shared_ptr<grpc::ChannelCredentials> RpcSecurity::ForChannel(Role server,
                                                                  const std::string& node) const {
  if (files_ == nullptr) return grpc::InsecureChannelCredentials();
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(files_->provider);
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<RoleVerifier>(server, node, tls_));
  options.set_check_call_host(false);
  return tls::TlsCredentials(options);
}

}  // namespace ecpipe
