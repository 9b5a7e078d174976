// SPDX-License-Identifier: Apache-2.0
// Asks a daemon for the configuration by which it runs.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/process/config.h"
#include "net/tls/tls.h"

namespace ecpipe {

struct DaemonConfig {
  ConfigValues values;
  std::set<std::string> reloadable;  // keys that it takes up on SIGHUP
};

// Of the coordinator at `address`, or of the helper there of `node`, unless that is empty.
// UNIMPLEMENTED: the daemon is of a version that does not tell.
absl::StatusOr<DaemonConfig> FetchConfig(const std::string& address, const std::string& node,
                                         Duration patience, const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
