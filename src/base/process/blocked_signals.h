// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <signal.h>

namespace ecpipe {

// While it lives the calling thread takes no signals, and neither do, for good, the threads that it
// starts meanwhile: a library's threads must not run the handlers of the program that has linked
// it. Signals that tell of a thread's own mistake are not blocked.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) {
      ::sigdelset(&blocked, own);
    }
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace ecpipe
