// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "net/tls/tls.h"
#include "requestor/doctor/facts.h"

namespace ecpipe {

// Has the coordinator examine itself and its helpers, which takes up to some 90 seconds where many
// of them hang. UNIMPLEMENTED: the coordinator is too old. RESOURCE_EXHAUSTED: it examines for
// somebody else. `tls` null: plain text.
absl::StatusOr<Examination> ExamineCluster(const std::string& coordinator,
                                           const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
