// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "model/striped_file.h"
#include "net/tls/tls.h"

namespace ecpipe {

// Asks the coordinator where the bytes of a storage system's file are.
class StripedFileClient {
 public:
  virtual ~StripedFileClient() = default;
  // Of the file of `system` at this path, from the part that has byte `offset` on. The errors of
  // StripeSource::FileAt; INVALID_ARGUMENT also for parts that do not fit together.
  virtual absl::StatusOr<StripedFile> FileAt(const std::string& system, const std::string& path,
                                             uint64_t offset) = 0;
};

// As MakeCoordinatorClient.
absl::StatusOr<std::unique_ptr<StripedFileClient>> MakeStripedFileClient(
    const std::string& address, Duration timeout, const std::shared_ptr<TlsContext>& tls);

}  // namespace ecpipe
