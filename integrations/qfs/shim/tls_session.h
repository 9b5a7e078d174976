// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 over a socket that does not block, as a client with a certificate.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shim/failure.h"
#include "shim/settings.h"

namespace ecpipe_qfs {

// Used by one thread, which has all signals blocked.
class TlsSession {
 public:
  // Reads the files, so that replaced ones hold from the next connection on. `fd` outlives the
  // session. UNAUTHENTICATED: the files are no good.
  static Failure Create(const Settings& settings, int fd, std::unique_ptr<TlsSession>* session);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // To be called again after wanted_events() until `done`. UNAUTHENTICATED: the endpoint's
  // certificate is not of the CA, or not of a helper or requestor, or it does not like ours.
  Failure Handshake(bool* done);
  // As read() and write(): -1 with errno EAGAIN, or with another one and failure().
  ssize_t Read(uint8_t* bytes, size_t count);
  ssize_t Write(const uint8_t* bytes, size_t count);

  short wanted_events() const { return wanted_; }
  const Failure& failure() const { return failure_; }

 private:
  struct State;

  explicit TlsSession(std::unique_ptr<State> state);
  // Takes note of why a call returned `result`: -1 with errno EAGAIN or EPROTO, or 0 for an end.
  ssize_t Fail(int result);

  std::unique_ptr<State> state_;
  short wanted_ = 0;
  Failure failure_;
};

}  // namespace ecpipe_qfs
