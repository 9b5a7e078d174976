// SPDX-License-Identifier: Apache-2.0
// The paper's data plane (§5.2): a sender appends its frames to a list in the redis-server beside
// it, and the receiver pops them from there. Kept as a tested choice and as the benchmarks'
// baseline.
//
// A stream's list is "ecpipe:<repair>:<attempt>:<lane>:<hop>:<output>:<token>", so attempts
// and repairs never share one and nobody guesses one; ":credit" behind it is the list through which
// the receiver says how many frames it has taken, which bounds the frames held in redis. Both
// expire on their own when a repair is abandoned. Redis has no TLS here: loopback or a private
// network only. Where a password is set, each connection begins with AUTH, for the default user.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "net/transport.h"

namespace ecpipe {

struct RedisOptions {
  std::string own_address;    // the redis-server that Offer() uses, "host:port"; empty: none
  Duration expiry{};          // of a list, after its last frame was added
  std::string password_file;  // read for each stream, by ReadSecret; empty: no password
  // Offer() waits so long until that server answers and takes the password: otherwise only the
  // receiver's timeout would notice, and nobody would say why. Asked once a second. 0: not asked.
  Duration own_patience = std::chrono::seconds(1);
};

// A password that a server does not take, or wants and is not given, is UNAUTHENTICATED.
std::unique_ptr<Transport> MakeRedisTransport(RedisOptions options);

}  // namespace ecpipe
