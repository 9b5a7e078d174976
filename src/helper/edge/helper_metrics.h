// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "helper/sessions/session_manager.h"
#include "net/rate_limiter.h"
#include "web/metrics.h"

namespace ecpipe {

// What a helper's metrics tell of. All pointers outlive the scrapes.
void AddSessionMetrics(SessionManager* sessions, RateLimiter* limiter, Metrics* metrics);

}  // namespace ecpipe
