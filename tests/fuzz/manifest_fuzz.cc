// SPDX-License-Identifier: Apache-2.0
// Any bytes are either refused as a manifest or read, and what was read survives being written.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "requestor/files/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<ecpipe::Manifest> read = ecpipe::ParseManifest(text, "fuzz");
  if (!read.ok()) {
    ECPIPE_CHECK(absl::IsInvalidArgument(read.status()));
    return 0;
  }
  ECPIPE_CHECK(ecpipe::ValidateManifest(*read).ok());
  const absl::StatusOr<ecpipe::Manifest> again =
      ecpipe::ParseManifest(ecpipe::ManifestText(*read), "fuzz, written again");
  ECPIPE_CHECK(again.ok() && *again == *read);
  return 0;
}
