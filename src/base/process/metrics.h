// SPDX-License-Identifier: Apache-2.0
// Metrics of one daemon, served for Prometheus. Names carry their unit, e.g.
// ecpipe_data_sent_bytes_total.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

class MetricsServer {
 public:
  // Serves /metrics on `address`, "host:port". UNAVAILABLE when it cannot listen there.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& address);
  ~MetricsServer();

  // Adds a counter or gauge whose value `read` gives when it is scraped; `read` is called from the
  // server's threads and must stay valid until the server is destroyed.
  void AddCounter(const std::string& name, const std::string& help, std::function<double()> read);
  void AddGauge(const std::string& name, const std::string& help, std::function<double()> read);

 private:
  struct State;
  explicit MetricsServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ecpipe
