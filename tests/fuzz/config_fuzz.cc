// SPDX-License-Identifier: Apache-2.0
// Configurations: refused with INVALID_ARGUMENT, or read with every value within its bounds.
#include <string>

#include "base/check.h"
#include "base/process/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  absl::StatusOr<ecpipe::Config> config = ecpipe::Config::Parse(text, "fuzz");
  if (!config.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(config.status()));
    return 0;
  }
  const std::string id = config->RequiredString("helper.node_id");
  const std::vector<std::string> roots = config->RequiredStrings("helper.roots");
  config->String("helper.rack", "");
  const uint64_t bytes = config->Size("limits.max_buffer_bytes", 4096, 1024, 1 << 20);
  ECPIPE_CHECK(bytes >= 1024 && bytes <= 1 << 20);
  const int64_t sessions = config->Integer("limits.max_sessions", 5, 1, 10);
  ECPIPE_CHECK(sessions >= 1 && sessions <= 10);
  const double seconds = config->Seconds("timeouts.stall_seconds", 1, 60);
  ECPIPE_CHECK(seconds > 0 && seconds <= 60);
  config->Bool("helper.insecure", false);
  const absl::Status status = config->Finish();
  ECPIPE_CHECK(status.ok() || absl::IsInvalidArgument(status));
  ECPIPE_CHECK(!status.ok() || (!id.empty() && !roots.empty()));
  return 0;
}
