// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "net/tls/peer_identity.h"
#include "net/tls/tls.h"

namespace ecpipe {

class AuditLog;
class CallerLimits;

// The security of the control plane: mutual TLS, or none. New connections use changed certificate
// files within two seconds. Thread-safe.
class RpcSecurity {
 public:
  // Null: plain text.
  explicit RpcSecurity(std::shared_ptr<TlsContext> tls, std::shared_ptr<AuditLog> audit = nullptr);
  ~RpcSecurity();

  // Callers must have a certificate; access.h says what they may call, and `limits` how much at
  // once.
  std::shared_ptr<grpc::ServerCredentials> ForServer(std::shared_ptr<CallerLimits> limits) const;
  // For channels to servers of this role, and with this node's certificate unless `node` is empty.
  // Which host they are on does not matter.
  std::shared_ptr<grpc::ChannelCredentials> ForChannel(Role server,
                                                       const std::string& node = "") const;

  const std::shared_ptr<AuditLog>& audit() const { return audit_; }

 private:
  struct Files;
  const std::shared_ptr<TlsContext> tls_;     // shared with the data plane; null: plain text
  const std::shared_ptr<AuditLog> audit_;     // shared with the server's calls; may be null
  const std::unique_ptr<const Files> files_;  // null: plain text
};

}  // namespace ecpipe
