// SPDX-License-Identifier: Apache-2.0
// What the journal's tables share: values that are stored by name, and rows that make no sense.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/log.h"
#include "base/status.h"

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

// One such row must not keep the others from being read.
inline void LogBadRow(const std::string& row, const absl::Status& damage) {
  Log(LogLevel::kError, "journal.damaged", {{"record", row}, {"status", StatusText(damage)}});
}

}  // namespace ecpipe
