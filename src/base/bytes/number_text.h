// SPDX-License-Identifier: Apache-2.0
// Numbers that people write: the one place where a NaN, an infinity and what is out of range are
// refused.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace ecpipe {

// A decimal number from `least` to `most`, both finite. INVALID_ARGUMENT otherwise.
absl::StatusOr<double> ParseNumber(const std::string& text, double least, double most);

// The same as a check of a command's option: why the text is none, or nothing.
std::function<std::string(const std::string& text)> NumberFrom(double least, double most);

}  // namespace ecpipe
