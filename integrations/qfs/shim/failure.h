// SPDX-License-Identifier: Apache-2.0
// What went wrong, in the terms of ecpipe_qfs.h. The library is loaded into a process with its own
// libraries, so it has no Abseil, and this stands in for absl::Status.
#pragma once

#include <string>

#include "shim/ecpipe_qfs.h"

namespace ecpipe_qfs {

struct [[nodiscard]] Failure {
  int code = ECPIPE_QFS_OK;
  std::string message;

  bool ok() const { return code == ECPIPE_QFS_OK; }
};

// What `call` failed with, by errno; "WHAT: reason. ADVICE".
Failure SystemFailure(int code, const std::string& what, int error_number,
                      const std::string& advice);

}  // namespace ecpipe_qfs
