// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace ecpipe {

// Tells how far work has come, on the thread that made the call. `done` and `total` have one unit,
// bytes unless the call that takes the function says otherwise; `total` does not change within a
// call. It is called many times a second, so it has to be quick.
using ProgressFn = std::function<void(uint64_t done, uint64_t total)>;

}  // namespace ecpipe
