// SPDX-License-Identifier: Apache-2.0
#include "net/tls/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/process/blocked_signals.h"
#include "base/process/log.h"
#include "base/status.h"
#include "net/tls/free_with.h"

namespace ecpipe {
namespace {

using SslPtr = std::unique_ptr<SSL, FreeWith<SSL_free>>;
using SslContextPtr = std::unique_ptr<SSL_CTX, FreeWith<SSL_CTX_free>>;

}  // namespace

struct TlsSession::State {
  int fd = -1;
  const Crls* crls = nullptr;           // of the context
  std::shared_ptr<const void> context;  // shared: files may be replaced while the session runs
  SslPtr ssl;
  std::set<Role> roles;   // of which the peer must have one; empty: any, or none
  std::string node;       // that it must be; empty: any
  std::string peer_node;  // that it is
  absl::Status error;
  std::string refusal;  // why the peer's certificate was not taken
  short wanted = POLLIN;
  bool write_pending = false;
  bool end_of_input = false;
  int send_flags = 0;

  int Verify(int chain_is_good, X509_STORE_CTX* chain);
  absl::Status CheckPeer(const PeerIdentity& peer) const;
  // Takes note of why an SSL call returned `result`; -1 with errno, or 0 for the peer's goodbye.
  int Fail(int result);
};

namespace {

// A BIO over a socket that never raises SIGPIPE, and passes MSG_MORE on.
TlsSession::State* StateOf(BIO* bio) { return static_cast<TlsSession::State*>(BIO_get_data(bio)); }

int SocketWrite(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const TlsSession::State* state = StateOf(bio);
  const ssize_t sent =
      ::send(state->fd, bytes, static_cast<size_t>(count), MSG_NOSIGNAL | state->send_flags);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int SocketRead(BIO* bio, char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  TlsSession::State* state = StateOf(bio);
  const ssize_t got = ::recv(state->fd, bytes, static_cast<size_t>(count), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (got == 0) state->end_of_input = true;
  return static_cast<int>(got);
}

long SocketControl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return StateOf(bio)->end_of_input ? 1 : 0;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ecpipe socket");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(made, SocketWrite);
    BIO_meth_set_read(made, SocketRead);
    BIO_meth_set_ctrl(made, SocketControl);
    return made;
  }();
  return method;
}

int VerifyPeer(int chain_is_good, X509_STORE_CTX* chain) {
  SSL* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(chain, SSL_get_ex_data_X509_STORE_CTX_idx()));
  return static_cast<TlsSession::State*>(SSL_get_app_data(ssl))->Verify(chain_is_good, chain);
}

}  // namespace

absl::Status TlsSession::State::CheckPeer(const PeerIdentity& peer) const {
  bool fits = roles.empty();
  for (const Role role : peer.roles) fits |= roles.contains(role);
  if (!fits) {
    return absl::UnauthenticatedError("the peer's certificate needs one of the roles " +
                                      RoleNames(roles) + "; it has " +
                                      (peer.roles.empty() ? "none" : RoleNames(peer.roles)));
  }
  if (!node.empty() && peer.node != node) {
    return absl::UnauthenticatedError("the peer's certificate names node '" + peer.node +
                                      "', but node '" + node + "' was expected");
  }
  return absl::OkStatus();
}

// Called for each certificate of the chain, the peer's own last. A refusal in here still reaches
// the peer as an alert.
int TlsSession::State::Verify(int chain_is_good, X509_STORE_CTX* chain) {
  if (chain_is_good != 1) {
    refusal = std::string("the peer's certificate is not valid: ") +
              X509_verify_cert_error_string(X509_STORE_CTX_get_error(chain));
    return 0;
  }
  if (X509_STORE_CTX_get_error_depth(chain) > 0) return 1;
  const PeerIdentity peer = IdentityOf(X509_STORE_CTX_get_current_cert(chain));
  const absl::Status fits = CheckPeer(peer);
  peer_node = peer.node;
  const bool revoked = IsRevoked(*crls, X509_STORE_CTX_get_current_cert(chain));
  if (fits.ok() && !revoked) return 1;
  refusal =
      revoked ? "the certificate of '" + peer.node + "' is revoked" : std::string(fits.message());
  X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

int TlsSession::State::Fail(int result) {
  const int saved_errno = errno;
  const int kind = SSL_get_error(ssl.get(), result);
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) {
    wanted = kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    errno = EAGAIN;
    return -1;
  }
  if (kind == SSL_ERROR_ZERO_RETURN) return 0;
  if (kind == SSL_ERROR_SYSCALL || end_of_input) {
    error = absl::UnavailableError(
        "the peer closed the connection without a TLS goodbye (close_notify); if it refused our "
        "certificate, its "
        "log says why");
    errno = kind == SSL_ERROR_SYSCALL && saved_errno != 0 ? saved_errno : ECONNRESET;
    ERR_clear_error();
    return -1;
  }
  const std::string reason = QueuedTlsError();
  if (!refusal.empty()) {
    error = absl::UnauthenticatedError("TLS: " + refusal);
  } else if (SSL_is_init_finished(ssl.get()) && reason.find("alert") == std::string::npos) {
    error = absl::DataLossError("TLS: the bytes received are damaged: " + reason);
  } else {
    error = absl::UnauthenticatedError("TLS: " + reason);
  }
  errno = EPROTO;
  return -1;
}

TlsSession::TlsSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TlsSession::~TlsSession() = default;

absl::StatusOr<bool> TlsSession::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(state_->ssl.get());
  if (result == 1) return true;
  if (state_->Fail(result) < 0 && errno == EAGAIN) return false;
  return state_->error.ok()
             ? absl::UnavailableError("the peer ended the connection during the TLS handshake")
             : state_->error;
}

bool TlsSession::refused_peer() const { return !state_->refusal.empty(); }
const std::string& TlsSession::peer_node() const { return state_->peer_node; }
short TlsSession::wanted_events() const { return state_->wanted; }

ssize_t TlsSession::Read(std::span<uint8_t> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    size_t got = 0;
    ERR_clear_error();
    const int result =
        SSL_read_ex(state_->ssl.get(), bytes.data() + done, bytes.size() - done, &got);
    if (result != 1) {
      const int failure = state_->Fail(result);
      return done > 0 ? static_cast<ssize_t>(done) : failure;
    }
    done += got;
  }
  return static_cast<ssize_t>(done);
}

ssize_t TlsSession::Write(std::span<const uint8_t> bytes, int flags) {
  size_t done = 0;
  while (done < bytes.size()) {
    const size_t rest = bytes.size() - done;
    state_->send_flags = rest > SSL3_RT_MAX_PLAIN_LENGTH ? MSG_MORE : flags & MSG_MORE;
    size_t sent = 0;
    ERR_clear_error();
    const int result = SSL_write_ex(state_->ssl.get(), bytes.data() + done, rest, &sent);
    state_->write_pending = false;
    if (result != 1) {
      const int failure = state_->Fail(result);
      state_->write_pending = failure < 0 && errno == EAGAIN;
      return done > 0 ? static_cast<ssize_t>(done) : failure;
    }
    done += sent;
  }
  return static_cast<ssize_t>(done);
}

bool TlsSession::write_pending() const { return state_->write_pending; }
bool TlsSession::has_unread() const { return SSL_has_pending(state_->ssl.get()) == 1; }

void TlsSession::SendCloseNotify() {
  if (state_->write_pending || !SSL_is_init_finished(state_->ssl.get())) return;
  state_->send_flags = 0;
  SSL_shutdown(state_->ssl.get());
  ERR_clear_error();
}

const absl::Status& TlsSession::error() const { return state_->error; }

// What the files held when they were read.
struct TlsContext::Loaded {
  SslContextPtr ssl;
  Crls crls;
  CertificatePtr first_ca;
  std::string stamp;
  int64_t expiry_unix_seconds = 0;
};

namespace {

// Of the certificate and of the CAs that it trusts.
int64_t FirstExpiry(SSL_CTX* context) {
  int64_t first = ExpiryOf(SSL_CTX_get0_certificate(context));
  const STACK_OF(X509_OBJECT)* trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(trusted); ++i) {
    const X509* ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
    if (ca != nullptr) first = std::min(first, ExpiryOf(ca));
  }
  return first;
}

// Of files that are taken up: those that are only checked are read again for that.
void LogIfDue(const TlsFiles& files, const Crls& crls) {
  if (!IsOneDue(crls)) return;
  Log(LogLevel::kWarning, "tls.crl_old", {{"crl", files.crl}, {"hint", "a newer one is due"}});
}

// Without a node it is the accepting end. `protocol`: as TLS names those that are spoken inside.
std::unique_ptr<TlsSession> MakeSession(SSL_CTX* context, const Crls* crls,
                                        std::shared_ptr<const void> owner, int fd,
                                        const std::set<Role>& roles,
                                        const std::optional<std::string>& node,
                                        std::span<const unsigned char> protocol = {}) {
  auto state = std::make_unique<TlsSession::State>();
  state->fd = fd;
  state->crls = crls;
  state->context = std::move(owner);
  state->roles = roles;
  state->node = node.value_or("");
  state->ssl.reset(SSL_new(context));
  if (state->ssl == nullptr) throw std::bad_alloc();
  BIO* bio = BIO_new(SocketMethod());
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, state.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(state->ssl.get(), bio, bio);
  SSL_set_app_data(state->ssl.get(), state.get());
  if (!protocol.empty()) {
    SSL_set_alpn_protos(state->ssl.get(), protocol.data(), static_cast<unsigned>(protocol.size()));
  }
  if (node) {
    // The bytes come to this end: fewer reads for them. The other end looks at its socket to learn
    // whether the peer is there, so nothing may be read ahead of it.
    SSL_set_read_ahead(state->ssl.get(), 1);
    SSL_set_default_read_buffer_len(state->ssl.get(), 64 << 10);
    SSL_set_connect_state(state->ssl.get());
  } else {
    SSL_set_accept_state(state->ssl.get());
  }
  return std::make_unique<TlsSession>(std::move(state));
}

}  // namespace

TlsContext::TlsContext(const TlsFiles& files, std::shared_ptr<const Loaded> loaded)
    : files_(files), loaded_(std::move(loaded)) {}

absl::StatusOr<std::shared_ptr<const TlsContext::Loaded>> TlsContext::Load(
    const TlsFiles& files, ConfigTroubles* troubles) {
  auto loaded = std::make_shared<Loaded>();
  loaded->stamp = StampOf(files);  // before reading: what changes meanwhile is read again
  loaded->ssl.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* const ssl = loaded->ssl.get();
  if (ssl == nullptr) throw std::bad_alloc();
  ERR_clear_error();
  const auto bad = [&](const char* key, const std::string& what) {
    troubles->AddOfFile(
        key, absl::InvalidArgumentError("TLS: cannot use " + what + ": " + QueuedTlsError()));
  };
  SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION);
  SSL_CTX_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, VerifyPeer);
  // No resumption: a session is as long as its stream, and each peer shows its certificate.
  SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(ssl, 0);
  if (SSL_CTX_load_verify_file(ssl, files.ca.c_str()) != 1) {
    bad("tls.ca", "the CA file " + files.ca);
  } else {
    absl::StatusOr<Crls> crls = LoadCrls(files.crl, files.ca);
    troubles->AddOfFile("tls.crl", crls.status());
    if (crls.ok()) loaded->crls = *std::move(crls);
  }
  if (SSL_CTX_use_certificate_chain_file(ssl, files.certificate.c_str()) != 1) {
    bad("tls.certificate", "the certificate file " + files.certificate);
  }
  const absl::Status mode = CheckKeyMode(files.key);
  troubles->AddOfFile("tls.key", mode);
  if (mode.ok() && SSL_CTX_use_PrivateKey_file(ssl, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    bad("tls.key", "the key file " + files.key);
  }
  if (troubles->ok() && SSL_CTX_check_private_key(ssl) != 1) {
    bad("tls.key", "the key " + files.key + " with the certificate " + files.certificate);
  }
  if (!troubles->ok()) return troubles->First();
  loaded->first_ca = FirstCertificateIn(files.ca);
  ERR_clear_error();
  loaded->expiry_unix_seconds = FirstExpiry(ssl);
  return loaded;
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Create(const TlsFiles& files) {
  ConfigTroubles troubles;
  ECPIPE_ASSIGN_OR_RETURN(std::shared_ptr<const Loaded> loaded, Load(files, &troubles));
  LogIfDue(files, loaded->crls);
  std::shared_ptr<TlsContext> context(new TlsContext(files, std::move(loaded)));
  context->NoteEnd();
  const BlockedSignals for_its_thread;
  absl::StatusOr<Thread> thread = Thread::Start([context = context.get()] { context->Watch(); });
  if (thread.ok()) context->thread_ = *std::move(thread);
  return context;
}

ConfigTroubles TlsContext::Check(const TlsFiles& files) {
  ConfigTroubles troubles;
  if (!files.enabled() || !CheckComplete(files).ok()) return troubles;
  [[maybe_unused]] const auto loaded = Load(files, &troubles);
  return troubles;
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::CreateIfEnabled(const TlsFiles& files) {
  ECPIPE_RETURN_IF_ERROR(CheckComplete(files));
  if (!files.enabled()) return std::shared_ptr<TlsContext>();
  return Create(files);
}

std::shared_ptr<const TlsContext::Loaded> TlsContext::Current() {
  if (!thread_.joinable()) LookAtFiles();
  MutexLock lock(&mutex_);
  return loaded_;
}

void TlsContext::Watch() {
  constexpr auto kLookEvery = std::chrono::seconds(1);
  while (true) {
    {
      const TimePoint next = Clock::System().Now() + kLookEvery;
      MutexLock lock(&mutex_);
      while (!stopping_ && stop_.WaitUntil(lock, next)) {
      }
      if (stopping_) return;
    }
    // Without memory for it, the next look may have some.
    (void)Guarded([&] {
      LookAtFiles();
      return absl::OkStatus();
    });
  }
}

TlsContext::~TlsContext() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

bool TlsContext::HaveChanged(const std::string& stamp) {
  MutexLock lock(&mutex_);
  if (stamp == loaded_->stamp) refused_ = {};
  return stamp != loaded_->stamp && stamp != refused_.stamp;
}

void TlsContext::LookAtFiles() {
  MutexLock only_one(&look_mutex_);
  if (const std::string stamp = StampOf(files_); HaveChanged(stamp)) {
    ConfigTroubles troubles;
    absl::StatusOr<std::shared_ptr<const Loaded>> loaded = Load(files_, &troubles);
    {
      MutexLock lock(&mutex_);
      refused_ = {};
      if (!loaded.ok()) refused_ = {stamp, std::string(loaded.status().message())};
      if (loaded.ok()) loaded_ = *loaded;
    }
    if (loaded.ok()) {
      Log(LogLevel::kInfo, "tls.reloaded", {{"certificate", files_.certificate}});
      LogIfDue(files_, (*loaded)->crls);
    } else {
      Log(LogLevel::kWarning, "tls.reload_failed", {{"status", StatusText(loaded.status())}});
    }
  }
  NoteEnd();
}

void TlsContext::NoteEnd() {
  std::optional<int> days;
  {
    MutexLock lock(&mutex_);
    days = warnings_.Due(loaded_->expiry_unix_seconds, Clock::System().UnixMillis() / 1000);
  }
  if (!days) return;
  Log(LogLevel::kWarning, "tls.certificate_ends",
      {{"certificate", files_.certificate}, {"ca", files_.ca}, {"days", std::to_string(*days)}});
}

bool TlsContext::Revoked(const std::string& pem) {
  const std::shared_ptr<const Loaded> loaded = Current();
  if (loaded->crls.empty()) return false;
  const CertificatePtr certificate = CertificateOfPem(pem);
  return certificate == nullptr || IsRevoked(loaded->crls, certificate.get());
}

std::unique_ptr<TlsSession> TlsContext::Dial(int fd, const std::string& node) {
  const std::shared_ptr<const Loaded> loaded = Current();
  return MakeSession(loaded->ssl.get(), &loaded->crls, loaded, fd, {Role::kHelper}, node);
}

std::unique_ptr<TlsSession> TlsContext::Accept(int fd, const std::set<Role>& roles) {
  const std::shared_ptr<const Loaded> loaded = Current();
  return MakeSession(loaded->ssl.get(), &loaded->crls, loaded, fd, roles, std::nullopt);
}

std::unique_ptr<TlsSession> TlsContext::DialControl(int fd, const std::string& node) {
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  const std::shared_ptr<const Loaded> loaded = Current();
  return MakeSession(loaded->ssl.get(), &loaded->crls, loaded, fd, {Role::kHelper}, node, kHttp2);
}

TlsFacts TlsContext::Facts() {
  const std::shared_ptr<const Loaded> loaded = Current();
  TlsFacts facts;
  facts.chain.push_back(DerOf(SSL_CTX_get0_certificate(loaded->ssl.get())));
  STACK_OF(X509)* sent = nullptr;
  SSL_CTX_get0_chain_certs(loaded->ssl.get(), &sent);
  for (int i = 0; sent != nullptr && i < sk_X509_num(sent); ++i) {
    facts.chain.push_back(DerOf(sk_X509_value(sent, i)));
  }
  NoteTrusted(SSL_CTX_get_cert_store(loaded->ssl.get()), loaded->first_ca.get(), &facts);
  facts.lists = ListsOf(loaded->crls);
  MutexLock lock(&mutex_);
  facts.refused_files = refused_.why;
  return facts;
}

int64_t TlsContext::ExpiryUnixSeconds() { return Current()->expiry_unix_seconds; }

}  // namespace ecpipe
