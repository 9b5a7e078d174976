// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ecpipe {

// What one stream tells of the link that it went over, seen from its sender.
// docs/design/005-link-speeds.md says what may be concluded.
struct LinkTiming {
  std::string to;              // the receiver's node id
  uint64_t bytes = 0;          // with frame headers
  double seconds = 0;          // from the first byte until the receiver had all
  double network_seconds = 0;  // of these, how long nothing but the network was in the way; 0: the
                               // transport cannot tell
};

}  // namespace ecpipe
