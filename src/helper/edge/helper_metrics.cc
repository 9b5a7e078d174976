// SPDX-License-Identifier: Apache-2.0
#include "helper/edge/helper_metrics.h"

#include <string>

namespace ecpipe {

void AddSessionMetrics(SessionManager* sessions, RateLimiter* limiter, Metrics* metrics) {
  const auto counter = [&](const std::string& name, const std::string& help, auto read) {
    metrics->AddCounter(name, help,
                        [sessions, read] { return static_cast<double>(read(sessions->counts())); });
  };
  const auto gauge = [&](const std::string& name, const std::string& help, auto read) {
    metrics->AddGauge(name, help,
                      [sessions, read] { return static_cast<double>(read(sessions->counts())); });
  };
  using Counts = const SessionCounts&;
  counter("ecpipe_data_sent_bytes_total", "Bytes sent on the data plane, with frame headers.",
          [](Counts counts) { return counts.traffic.bytes_sent; });
  counter("ecpipe_data_received_bytes_total", "Bytes received on the data plane.",
          [](Counts counts) { return counts.traffic.bytes_received; });
  counter("ecpipe_block_read_bytes_total", "Bytes read from local blocks.",
          [](Counts counts) { return counts.traffic.block_bytes_read; });
  counter("ecpipe_parts_done_total", "Repair parts that ended well.",
          [](Counts counts) { return counts.parts_done; });
  counter("ecpipe_parts_failed_total", "Repair parts that ended with an error.",
          [](Counts counts) { return counts.parts_failed; });
  gauge("ecpipe_active_sessions", "Repair parts that are running.",
        [](Counts counts) { return counts.active_sessions; });
  gauge("ecpipe_buffer_bytes", "Bytes of slice buffers in use.",
        [](Counts counts) { return counts.buffer_bytes; });
  gauge("ecpipe_kept_parts", "Failed parts whose stored slices are kept for another attempt.",
        [](Counts counts) { return counts.kept_parts; });
  metrics->AddGauge("ecpipe_max_sessions", "The most repair parts that may run at once.",
                    [sessions] { return static_cast<double>(sessions->max_sessions()); });
  metrics->AddGauge("ecpipe_repair_limit_bytes_per_second",
                    "Limit of the rate at which repairs send from this helper; 0: no limit.",
                    [limiter] { return limiter->rate(); });
}

}  // namespace ecpipe
