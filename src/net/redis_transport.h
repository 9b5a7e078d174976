// SPDX-License-Identifier: Apache-2.0
// The paper's data plane (§5.2): a sender appends its frames to a list in the redis-server beside
// it, and the receiver pops them from there. Kept as a tested choice and as the benchmarks'
// baseline.
//
// A stream's list is "ecpipe:<repair>:<attempt>:<lane>:<hop>:<output>:<token>", so attempts
// and repairs never share one and nobody guesses one; ":credit" behind it is the list through which
// the receiver says how many frames it has taken, which bounds the frames held in redis. Both
// expire on their own when a repair is abandoned. Redis has no TLS here: loopback or a private
// network only.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "net/transport.h"

namespace ecpipe {

// `own_address` is the redis-server that Offer() uses, "host:port"; empty for a process that only
// receives. Lists expire `expiry` after the last frame was added.
std::unique_ptr<Transport> MakeRedisTransport(const std::string& own_address, Duration expiry);

// FAILED_PRECONDITION: the library that speaks to redis is not installed. It is looked for once in
// the life of a process.
absl::Status CheckRedisLibrary();

}  // namespace ecpipe
