// SPDX-License-Identifier: Apache-2.0
// What the journal's tables share: values that are stored by name, limits of a record, and rows
// that make no sense. A record has the same limits when it is written and when it is read.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/log.h"
#include "base/status.h"
#include "coordinator/store/catalog.h"

namespace ecpipe {

// The value of this name; DATA_LOSS when none of them has it. The names are in files: they stay.
template <typename Value, size_t count>
absl::StatusOr<Value> NamedIn(const Value (&values)[count], const char* (*name_of)(Value),
                              std::string_view name) {
  for (const Value value : values) {
    if (name == name_of(value)) return value;
  }
  return absl::DataLossError("it has the unknown value \"" + std::string(name) + "\"");
}

// INVALID_ARGUMENT for a name that is too long for the catalog, and so for the journal.
inline absl::Status CheckName(const char* what, const std::string& name) {
  if (name.size() <= kMaxCatalogIdBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string("the name of ") + what + " has " +
                                    std::to_string(name.size()) + " bytes, but at most " +
                                    std::to_string(kMaxCatalogIdBytes) + " are kept");
}

// What is refused when it is written is damage when it is read.
inline absl::Status AsDamage(const absl::Status& refused) {
  return refused.ok() ? refused : absl::DataLossError(refused.message());
}

// One such row must not keep the others from being read.
inline void LogBadRow(const std::string& row, const absl::Status& damage) {
  Log(LogLevel::kError, "journal.damaged", {{"record", row}, {"status", StatusText(damage)}});
}

}  // namespace ecpipe
