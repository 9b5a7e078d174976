// SPDX-License-Identifier: Apache-2.0
#include "shim/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace ecpipe_qfs {
namespace {

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using SslPtr = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;
using CertificatePtr = std::unique_ptr<X509, FreeWith<X509_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;

std::string QueuedError() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "unknown error" : reason;
}

Failure Unauthenticated(const std::string& what) {
  return {ECPIPE_QFS_UNAUTHENTICATED,
          "TLS: " + what + ". Check the certificates of both ends (deploy/make-certs.sh)"};
}

// An endpoint is part of a helper daemon, or of a requestor's.
bool HasEndpointRole(X509* certificate) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* text = name->d.uniformResourceIdentifier;
    const std::string uri(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                          static_cast<size_t>(ASN1_STRING_length(text)));
    if (uri == "ecpipe:role:helper" || uri == "ecpipe:role:requestor") return true;
  }
  return false;
}

Failure LoadFiles(const Settings& settings, SSL_CTX* context) {
  const std::string advice = "cannot be used: ";
  if (SSL_CTX_load_verify_file(context, settings.tls_ca.c_str()) != 1) {
    return Unauthenticated(settings.tls_ca + " " + advice + QueuedError());
  }
  if (SSL_CTX_use_certificate_chain_file(context, settings.tls_certificate.c_str()) != 1) {
    return Unauthenticated(settings.tls_certificate + " " + advice + QueuedError());
  }
  if (SSL_CTX_use_PrivateKey_file(context, settings.tls_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unauthenticated(settings.tls_key + " " + advice + QueuedError());
  }
  return {};
}

}  // namespace

struct TlsSession::State {
  SslContextPtr context;
  SslPtr ssl;
};

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsSession::~TlsSession() = default;

Failure TlsSession::Create(const Settings& settings, int fd, std::unique_ptr<TlsSession>* session) {
  ERR_clear_error();
  auto state = std::make_unique<State>();
  state->context.reset(SSL_CTX_new(TLS_client_method()));
  if (state->context == nullptr) return Unauthenticated(QueuedError());
  SSL_CTX_set_min_proto_version(state->context.get(), TLS1_3_VERSION);
  SSL_CTX_set_verify(state->context.get(), SSL_VERIFY_PEER, nullptr);
  Failure bad = LoadFiles(settings, state->context.get());
  if (!bad.ok()) return bad;
  state->ssl.reset(SSL_new(state->context.get()));
  if (state->ssl == nullptr || SSL_set_fd(state->ssl.get(), fd) != 1) {
    return Unauthenticated(QueuedError());
  }
  SSL_set_connect_state(state->ssl.get());
  SSL_set_read_ahead(state->ssl.get(), 1);
  SSL_set_mode(state->ssl.get(),
               SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  session->reset(new TlsSession(std::move(state)));
  return {};
}

Failure TlsSession::Handshake(bool* done) {
  ERR_clear_error();
  const int result = SSL_do_handshake(state_->ssl.get());
  *done = result == 1;
  if (!*done) return Fail(result) < 0 && errno == EAGAIN ? Failure{} : failure_;
  const CertificatePtr peer(SSL_get1_peer_certificate(state_->ssl.get()));
  if (peer != nullptr && HasEndpointRole(peer.get())) return {};
  return Unauthenticated("the endpoint's certificate has neither the role helper nor requestor");
}

ssize_t TlsSession::Fail(int result) {
  const int kind = SSL_get_error(state_->ssl.get(), result);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
    wanted_ = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    errno = EAGAIN;
    return -1;
  }
  const bool ready = SSL_is_init_finished(state_->ssl.get()) == 1;
  const bool ended = kind == SSL_ERROR_ZERO_RETURN || kind == SSL_ERROR_SYSCALL;
  const long verified = SSL_get_verify_result(state_->ssl.get());
  const std::string reason = ended ? "the endpoint closed the connection" : QueuedError();
  ERR_clear_error();
  if (ended && ready) {
    failure_ = {ECPIPE_QFS_UNAVAILABLE, "TLS: " + reason + ". The log of ecpipe-helper says why"};
    errno = EPROTO;
    return kind == SSL_ERROR_ZERO_RETURN ? 0 : -1;
  }
  errno = EPROTO;
  if (ready && reason.find("alert") == std::string::npos) {
    failure_ = {ECPIPE_QFS_DATA_LOSS,
                "TLS: the bytes that came are damaged: " + reason + ". Look for a faulty network"};
    return -1;
  }
  failure_ = Unauthenticated(verified == X509_V_OK
                                 ? reason
                                 : std::string("the endpoint's certificate is not valid: ") +
                                       X509_verify_cert_error_string(verified));
  return -1;
}

ssize_t TlsSession::Read(uint8_t* bytes, size_t count) {
  size_t got = 0;
  ERR_clear_error();
  const int result = SSL_read_ex(state_->ssl.get(), bytes, count, &got);
  return result == 1 ? static_cast<ssize_t>(got) : Fail(result);
}

ssize_t TlsSession::Write(const uint8_t* bytes, size_t count) {
  size_t sent = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(state_->ssl.get(), bytes, count, &sent);
  const ssize_t done = result == 1 ? static_cast<ssize_t>(sent) : Fail(result);
  return done == 0 ? -1 : done;
}

}  // namespace ecpipe_qfs
