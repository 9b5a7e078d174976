// SPDX-License-Identifier: Apache-2.0
#include "web/daemon_pages.h"

#include <string>
#include <utility>

namespace ecpipe {
namespace {

HttpReply ReplyFor(const absl::Status& status) {
  HttpReply reply;
  if (!status.ok()) reply.status = 503;
  reply.body = status.ok() ? "ok\n" : std::string(status.message()) + "\n";
  return reply;
}

}  // namespace

absl::Status LoopWatch::Alive() const {
  const Duration silent = Clock::System().Now() - last_.load();
  if (silent <= patience_) return absl::OkStatus();
  return absl::UnavailableError("the loop of this daemon has not turned for " +
                                std::to_string(static_cast<int>(Seconds(silent))) +
                                " s; a restart may help, the log may say why");
}

absl::StatusOr<std::unique_ptr<HttpServer>> ServeDaemonPages(const WebOptions& options,
                                                             std::shared_ptr<TlsContext> tls,
                                                             Metrics* metrics, Health health,
                                                             HttpServer::Pages more) {
  if (options.listen.empty()) return std::unique_ptr<HttpServer>();
  if (tls != nullptr) {
    metrics->AddGauge("ecpipe_certificate_expiry_timestamp_seconds",
                      "Unix time at which the first of certificate and CA ends.",
                      [tls] { return static_cast<double>(tls->ExpiryUnixSeconds()); });
  }
  HttpServer::Pages pages = std::move(more);
  pages["/metrics"] = [metrics] {
    return HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics->Text()};
  };
  pages["/healthz"] = [alive = std::move(health.alive)] { return ReplyFor(alive()); };
  pages["/readyz"] = [ready = std::move(health.ready)] { return ReplyFor(ready()); };
  return HttpServer::Start(options.listen, options.tls ? std::move(tls) : nullptr,
                           std::move(pages));
}

}  // namespace ecpipe
