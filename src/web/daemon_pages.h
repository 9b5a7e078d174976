// SPDX-License-Identifier: Apache-2.0
// What every daemon shows over HTTP, as [web] in its configuration says.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "net/tls/tls.h"
#include "web/http_server.h"
#include "web/metrics.h"
#include "web/web_options.h"

namespace ecpipe {

// Whether a loop that a daemon needs still turns. Thread-safe.
class LoopWatch {
 public:
  // No turn takes as long as `patience`.
  explicit LoopWatch(Duration patience = std::chrono::seconds(30)) : patience_(patience) {}

  void Turned() { last_ = Clock::System().Now(); }
  // UNAVAILABLE: the last turn, or the start, is longer ago than the patience.
  absl::Status Alive() const;

 private:
  const Duration patience_;
  std::atomic<TimePoint> last_{Clock::System().Now()};
};

// How a daemon is. A status that is not OK says what is wrong.
struct Health {
  std::function<absl::Status()> alive;  // its loops turn; if not, it should be restarted
  std::function<absl::Status()> ready;  // it may be used
};

// Serves /metrics, /healthz, /readyz, and `more`. Null without an address to listen on. `tls` is
// the process's own, null without TLS files; what it serves outlives the server.
absl::StatusOr<std::unique_ptr<HttpServer>> ServeDaemonPages(const WebOptions& options,
                                                             std::shared_ptr<TlsContext> tls,
                                                             Metrics* metrics, Health health,
                                                             HttpServer::Pages more = {});

}  // namespace ecpipe
