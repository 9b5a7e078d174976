// SPDX-License-Identifier: Apache-2.0
#include "fakes/accept_hook.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/mutex.h"

// A sanitizer's own, where the program has one: TSAN learns from it that what was done before
// connect() is seen after accept().
extern "C" __attribute__((weak)) int __interceptor_accept4(  // NOLINT(bugprone-reserved-identifier)
    int listener, sockaddr* address, socklen_t* length, int flags);

namespace ecpipe {
namespace {

Mutex mutex;
// Shared: a call may go on when the hook has been taken away.
std::shared_ptr<AcceptHook> current ABSL_GUARDED_BY(mutex);

std::shared_ptr<AcceptHook> Exchange(std::shared_ptr<AcceptHook> hook) {
  MutexLock lock(&mutex);
  return std::exchange(current, std::move(hook));
}

std::shared_ptr<AcceptHook> Current() {
  MutexLock lock(&mutex);
  return current;
}

int Accept(int listener, sockaddr* address, socklen_t* length, int flags) {
  if (const std::shared_ptr<AcceptHook> hook = Current()) {
    if (const int error = (*hook)(listener); error != 0) {
      errno = error;
      return -1;
    }
  }
  if (__interceptor_accept4 != nullptr) {
    return __interceptor_accept4(listener, address, length, flags);
  }
  return static_cast<int>(::syscall(SYS_accept4, listener, address, length, flags));
}

}  // namespace

HookedAccept::HookedAccept(AcceptHook hook) {
  Exchange(std::make_shared<AcceptHook>(std::move(hook)));
}

HookedAccept::~HookedAccept() { Exchange(nullptr); }

}  // namespace ecpipe

extern "C" int accept(int listener, sockaddr* address, socklen_t* length) {
  return ecpipe::Accept(listener, address, length, 0);
}

extern "C" int accept4(int listener, sockaddr* address, socklen_t* length, int flags) {
  return ecpipe::Accept(listener, address, length, flags);
}
