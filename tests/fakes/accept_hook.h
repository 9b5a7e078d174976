// SPDX-License-Identifier: Apache-2.0
// accept() and accept4() of a test's own program, which every library in it calls: errors that the
// system gives only when the whole host is out of something, and connections that never end.
#pragma once

#include <functional>

namespace ecpipe {

// Called before each accept on its thread, with the listening socket. Returns the errno that the
// call fails with, or 0: the system is asked.
using AcceptHook = std::function<int(int listener)>;

// From construction to destruction; one at a time.
class HookedAccept {
 public:
  explicit HookedAccept(AcceptHook hook);
  HookedAccept(const HookedAccept&) = delete;
  HookedAccept& operator=(const HookedAccept&) = delete;
  ~HookedAccept();
};

}  // namespace ecpipe
