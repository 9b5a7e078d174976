// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace ecpipe {

// The timing of one stream, as its sender saw it. It measures the link that the stream went over;
// docs/design/005-link-speeds.md says what may be concluded from it.
struct LinkTiming {
  std::string to;              // the receiver's node id
  uint64_t bytes = 0;          // with frame headers
  double seconds = 0;          // from the first byte until the receiver had all
  double network_seconds = 0;  // the share of `seconds` in which only the network held the stream
                               // up; 0: the transport cannot tell
};

}  // namespace ecpipe
