// SPDX-License-Identifier: Apache-2.0
// What a daemon finds out about itself, and about ports that it should reach, for `ecpipe doctor`.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "ecpipe/v1/doctor.pb.h"
#include "net/tls/tls.h"

namespace ecpipe {

// `tls` null: plain text. The clock is read now.
void FillDaemonFacts(TlsContext* tls, v1::DaemonFacts* facts);

// The room of the file system that has the directory, and an error if it does not say.
v1::DirectoryFacts RoomOf(const std::string& path);

struct DialTarget {
  std::string node;  // empty: the coordinator
  std::string port;  // "control" or "data"
  std::string address;
};

// Tries to connect to them, a few dozen at the same time; those that are left at `end` are counted
// as not dialled. Descriptors of a process that has few are left to its work.
void DialAll(const std::vector<DialTarget>& targets, TimePoint end, v1::DialFacts* facts);

// How long DialAll should have for so many targets: enough for all if few are silent.
Duration DialPatience(size_t targets);

}  // namespace ecpipe
