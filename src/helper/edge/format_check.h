// SPDX-License-Identifier: Apache-2.0
// Whether what lies in a directory of blocks is what the configured kind of store expects: by
// names and by headers, never by the bytes of blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "helper/edge/helper_config.h"

namespace ecpipe {

struct FormatLook {
  struct Misfit {
    std::string name;  // below the root
    std::string what;
  };
  struct Misfits {
    uint32_t count = 0;
    std::vector<Misfit> first;
  };
  uint32_t names = 0;    // that were looked at
  bool more = false;     // there are others
  uint32_t headers = 0;  // files of which the header was read
  Misfits unreadable;    // of this kind of store: files, and directories that cannot be listed
  Misfits foreign;       // names that this kind of store does not have
  std::string wrong;     // why the root as a whole is not of this kind; empty: it is
};

// The look ends after some thousand names, some dozen headers, or half a second, whichever comes
// first; a disk that hangs may hang it. What vanishes meanwhile does not count. A checksum file of
// the last minute that does not fit its block is no misfit, since the block may be about to be
// replaced; there is more to look at then. The error says why the root could not be listed. The
// clock must live until then.
absl::StatusOr<FormatLook> LookAtFormat(const std::string& path, StoreKind store,
                                        const Clock& clock);

}  // namespace ecpipe
