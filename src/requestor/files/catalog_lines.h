// SPDX-License-Identifier: Apache-2.0
// Stripes as lines of JSON, the form of `ecpipe catalog export`:
//   {"stripe_id":"f-s0","code":"rs(3,2)","block_bytes":65536,"blocks":[
//     {"block_id":"f-s0-b0","node":"node-1","sha256":"..."}, ...]}
// all in one line. A block whose SHA-256 is not known has none.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "model/stripe.h"

namespace ecpipe {

// More than a stripe of 255 blocks with the longest ids takes.
inline constexpr size_t kMaxCatalogLineBytes = 1 << 20;

// Without a newline.
std::string CatalogLine(const Stripe& stripe);

// INVALID_ARGUMENT says what is wrong: another key, a type, a key that is not there. Whether the
// stripe makes sense the coordinator says.
absl::StatusOr<Stripe> ParseCatalogLine(const std::string& line);

}  // namespace ecpipe
