// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace ecpipe {

// "4096", "32KiB", "64MiB", "1GiB", "2TiB" (powers of 1024) as bytes. INVALID_ARGUMENT otherwise,
// and when it does not fit 64 bits.
absl::StatusOr<uint64_t> ParseSize(const std::string& text);

// "64 MiB", "1.5 GiB", "512 B": for people.
std::string FormatSize(uint64_t bytes);

}  // namespace ecpipe
