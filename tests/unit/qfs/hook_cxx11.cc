// SPDX-License-Identifier: Apache-2.0
// Compiled as C++11, and never run: the hook is fit for a chunkserver that is built so.
#include "hook/ecpipe_ext_reader.h"

namespace {

struct Timer {
  virtual ~Timer() {}
  virtual void Timeout() = 0;
};
struct NetManager {
  void RegisterTimeoutHandler(Timer*) {}
  void UnRegisterTimeoutHandler(Timer*) {}
  void Wakeup() {}
};

}  // namespace

template class ecpipe_qfs::ExtReader<NetManager, Timer>;
