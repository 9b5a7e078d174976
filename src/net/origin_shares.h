// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ecpipe {

// What several addresses hold of something bounded, and who has to give way. Used by one thread.
class OriginShares {
 public:
  // Ids grow.
  void Add(uint64_t id, const std::string& origin);
  void Remove(uint64_t id);
  bool Has(uint64_t id) const { return origins_.contains(id); }
  size_t size() const { return origins_.size(); }
  size_t Of(const std::string& origin) const;
  // The oldest of the address with the most, so that a flood from one address pushes out only its
  // own; nothing where there is none.
  std::optional<uint64_t> Surplus() const;
  // Nothing where there is none.
  std::optional<uint64_t> Oldest() const;

 private:
  std::map<uint64_t, std::string> origins_;  // by id, oldest first
  std::map<std::string, size_t> counts_;     // no zeros
};

}  // namespace ecpipe
