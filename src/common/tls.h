// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for the data plane, both ends with a certificate of the same CA. OpenSSL is behind this
// header and nowhere else.
#pragma once

#include <sys/types.h>

#include <memory>
#include <set>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/peer_identity.h"
#include "common/tls_files.h"

namespace ecpipe {

// One end of a connection. It uses a non-blocking socket that it does not own and that outlives it.
// One thread at a time.
class TlsSession {
 public:
  struct State;

  explicit TlsSession(std::unique_ptr<State> state);
  ~TlsSession();

  // Goes on with the handshake. True: the peer has proven who it is, and may be here; on the
  // dialling side the peer's verdict on us comes with the first read. False: poll for
  // wanted_events(), then call again. UNAUTHENTICATED with the reason, or UNAVAILABLE when the peer
  // has gone.
  absl::StatusOr<bool> Handshake();
  // What the handshake waits for: POLLIN or POLLOUT.
  short wanted_events() const;

  // As recv() and send(): the count, 0 for the peer's orderly end, or -1 with errno. Fewer bytes
  // than fit were all that had come. EPROTO: see error(). A peer that goes without a TLS goodbye is
  // ECONNRESET, so nobody between the two can cut a stream short unnoticed.
  ssize_t Read(std::span<uint8_t> bytes);
  ssize_t Write(std::span<const uint8_t> bytes, int flags);  // MSG_MORE or 0
  // Whether a Write() that returned -1 has bytes under way: only the same bytes may follow.
  bool write_pending() const;
  // Whether bytes have come that Read() has not returned.
  bool has_unread() const;
  // Says that no more will be sent. Best effort, does not block.
  void SayGoodbye();

  // Why the last call failed.
  const absl::Status& error() const;

 private:
  const std::unique_ptr<State> state_;
};

// A process's identity, and whom it believes. The files are looked at again, once a second at most,
// when a session begins: what has changed is used from then on; what is damaged is logged, and what
// was there before stays in use. Thread-safe.
class TlsContext {
 public:
  // INVALID_ARGUMENT naming the file that cannot be used, or for a key that is not the
  // certificate's.
  static absl::StatusOr<std::shared_ptr<TlsContext>> Create(const TlsFiles& files);
  // The same, but null for files of which none is given.
  static absl::StatusOr<std::shared_ptr<TlsContext>> CreateIfEnabled(const TlsFiles& files);

  // The dialling end. The peer must be a helper, and the node that is named here.
  std::unique_ptr<TlsSession> Dial(int fd, const std::string& node);
  // The accepting end. The peer must have one of these roles.
  std::unique_ptr<TlsSession> Accept(int fd, const std::set<Role>& roles);

  const TlsFiles& files() const { return files_; }

 private:
  struct Loaded;
  explicit TlsContext(const TlsFiles& files, std::shared_ptr<const Loaded> loaded);
  static absl::StatusOr<std::shared_ptr<const Loaded>> Load(const TlsFiles& files);
  std::shared_ptr<const Loaded> Current();

  const TlsFiles files_;
  Mutex mutex_;
  // Shared: sessions go on with what they began with.
  std::shared_ptr<const Loaded> loaded_ ABSL_GUARDED_BY(mutex_);
  std::string refused_stamp_ ABSL_GUARDED_BY(mutex_);  // of files that could not be used
  TimePoint next_look_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace ecpipe
