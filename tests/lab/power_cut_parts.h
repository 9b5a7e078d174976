// SPDX-License-Identifier: Apache-2.0
// What helpers and coordinators keep on a disk, each written in numbered steps whose outcome
// follows from their numbers: after a power cut it can be said which step is the last.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ecpipe {

// What is stored, as texts by name.
using Stored = std::map<std::string, std::string>;

// Used by one thread at a time. The classes behind it are those of the daemons.
class PowerCutPart {
 public:
  virtual ~PowerCutPart() = default;

  virtual std::string name() const = 0;
  // As a daemon that starts: what is kept below `directory` is opened, or created.
  virtual absl::Status Open(const std::string& directory) = 0;
  // Steps count from 1.
  virtual absl::Status Step(uint64_t number) = 0;
  // What the step makes of what was stored before.
  virtual void Expect(uint64_t number, Stored* stored) const = 0;
  virtual absl::StatusOr<Stored> Read() = 0;

  // Whether this step, once it has returned OK, and all before it survive a power cut.
  virtual bool Acknowledges(uint64_t /*number*/) const { return true; }
  // The steps after the last acknowledged one that may have been stored as well.
  virtual uint64_t in_flight() const { return 1; }
};

std::vector<std::unique_ptr<PowerCutPart>> PowerCutParts();

}  // namespace ecpipe
