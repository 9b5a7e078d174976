// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for the data plane; both ends have a certificate of the same CA. Only tls.cc includes
// OpenSSL's TLS headers.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/process/config_troubles.h"
#include "base/thread.h"
#include "net/tls/certificates.h"
#include "net/tls/expiry.h"
#include "net/tls/peer_identity.h"
#include "net/tls/tls_files.h"

namespace ecpipe {

// One end of a connection. It uses a non-blocking socket that it does not own and that outlives it.
// Used by one thread at a time.
class TlsSession {
 public:
  struct State;

  // What one holds at most: 64 KiB that were read ahead, records on their way out, certificates.
  static constexpr size_t kMostBytes = 128 << 10;

  explicit TlsSession(std::unique_ptr<State> state);
  ~TlsSession();

  // Continues the handshake. True: the peer has proven its identity and is accepted; whether the
  // peer accepts us, the dialling side learns with its first read. False: poll for wanted_events(),
  // then call again. UNAUTHENTICATED: the peer has not proven its identity, with the reason.
  // UNAVAILABLE: it has gone.
  absl::StatusOr<bool> Handshake();
  // Whether this end has refused the peer's certificate; not, if there was no TLS to begin with.
  bool refused_peer() const;
  // The node that the peer's certificate names, after the handshake.
  const std::string& peer_node() const;
  // The event that the handshake waits for: POLLIN or POLLOUT.
  short wanted_events() const;

  // As recv() and send(): return the number of bytes, 0 for the peer's orderly end, or -1 with
  // errno. Fewer bytes than fit mean that no more had come. EPROTO: see error(). ECONNRESET if the
  // peer goes without a TLS goodbye, so that a stream that was cut short on its way is noticed.
  ssize_t Read(std::span<uint8_t> bytes);
  ssize_t Write(std::span<const uint8_t> bytes, int flags);  // MSG_MORE or 0
  // Whether a Write() that returned -1 still holds bytes: then only the same bytes may be written
  // next.
  bool write_pending() const;
  // Whether bytes have come that Read() has not returned.
  bool has_unread() const;
  // Tells the peer that no more will be sent. Best effort; does not block.
  void SendCloseNotify();

  // Why the last call failed.
  const absl::Status& error() const;

 private:
  const std::unique_ptr<State> state_;
};

// A process's own certificate and the CA that it trusts. A thread looks once a second whether the
// files have changed, and reads them, which takes long where a list of revoked ones is: no session
// waits for that. New files are used from then on; bad ones are logged, and the ones before stay in
// use. That these end is logged 30, 7 and 1 days before. Thread-safe.
class TlsContext {
 public:
  // INVALID_ARGUMENT, naming the file: it cannot be used, or the key does not fit the certificate.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Create(const TlsFiles& files);
  ~TlsContext();
  // All that is wrong with the files, if all are set: `tls.ca`, and so on.
  static ConfigTroubles Check(const TlsFiles& files);
  // As Create, but returns null if no file is set.
  static absl::StatusOr<std::shared_ptr<TlsContext>> CreateIfEnabled(const TlsFiles& files);

  // The dialling end. The peer must have the role helper and be this node.
  std::unique_ptr<TlsSession> Dial(int fd, const std::string& node);
  // The same for a helper's control port, to see how both like each other's certificates.
  std::unique_ptr<TlsSession> DialControl(int fd, const std::string& node);
  // The accepting end. The peer must have one of these roles; empty: any, or none.
  std::unique_ptr<TlsSession> Accept(int fd, const std::set<Role>& roles);

  // Looks at the files now, and reads them if they have changed.
  void LookAtFiles();

  // When the first of this process's certificate and its CA's ends, in Unix seconds.
  int64_t ExpiryUnixSeconds();
  // What this process shows and believes now.
  TlsFacts Facts();
  // Whether a peer's certificate, as PEM, is on a list of revoked ones. For the control plane,
  // whose own handshakes know no lists: it asks at each call, so that connections that are open end
  // too.
  bool Revoked(const std::string& pem);

  const TlsFiles& files() const { return files_; }

 private:
  struct Loaded;
  explicit TlsContext(const TlsFiles& files, std::shared_ptr<const Loaded> loaded);
  // The error is the first of the troubles.
  static absl::StatusOr<std::shared_ptr<const Loaded>> Load(const TlsFiles& files,
                                                            ConfigTroubles* troubles);
  std::shared_ptr<const Loaded> Current();
  void Watch();
  bool HaveChanged(const std::string& stamp);
  void NoteEnd();

  const TlsFiles files_;
  Mutex look_mutex_;  // held while files are read, so that only who looks at them takes it
  Mutex mutex_;
  CondVar stop_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // Shared: sessions go on with what they began with.
  std::shared_ptr<const Loaded> loaded_ ABSL_GUARDED_BY(mutex_);
  // Of files that could not be used; empty: those that are there are in use.
  struct Refused {
    std::string stamp;
    std::string why;
  };
  Refused refused_ ABSL_GUARDED_BY(mutex_);
  ExpiryWarnings warnings_ ABSL_GUARDED_BY(mutex_);
  Thread thread_;  // none, where there was none to be had: then who begins a session looks
};

}  // namespace ecpipe
