// SPDX-License-Identifier: Apache-2.0
// Configurations: refused with INVALID_ARGUMENT, or read with every value within its bounds.
#include <string>

#include "common/check.h"
#include "common/config.h"
#include "common/fault_points.h"
#include "common/size_text.h"
#include "common/tcp_socket.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (auto config = ecpipe::Config::Parse(text, "fuzz"); config.ok()) {
    config->RequiredString("helper.node_id");
    config->RequiredStrings("helper.roots");
    config->String("helper.rack", "");
    const uint64_t bytes = config->Size("limits.max_buffer_bytes", 4096, 1024, 1 << 20);
    ECPIPE_CHECK(bytes >= 1024 && bytes <= 1 << 20);
    const int64_t sessions = config->Integer("limits.max_sessions", 5, 1, 10);
    ECPIPE_CHECK(sessions >= 1 && sessions <= 10);
    ECPIPE_CHECK(config->Seconds("timeouts.stall_seconds", 1, 60) > 0);
    config->Bool("helper.insecure", false);
    const absl::Status status = config->Finish();
    ECPIPE_CHECK(status.ok() || absl::IsInvalidArgument(status));
  } else {
    ECPIPE_CHECK(absl::IsInvalidArgument(config.status()));
  }
  (void)ecpipe::ParseSize(text);
  if (const auto address = ecpipe::ParseHostPort(text); address.ok()) {
    ECPIPE_CHECK(address->port >= 0 && address->port <= 65535 && !address->host.empty());
  }
  return 0;
}
