// SPDX-License-Identifier: Apache-2.0
// Integers in names.
#pragma once

#include <charconv>
#include <string>
#include <system_error>

namespace ecpipe {

// Whether the text is exactly what std::to_string writes for an integer of this type. Another
// spelling, such as "007", would be a second name of one thing. `value` is unspecified otherwise.
template <typename Integer>
bool ReadExactInteger(const std::string& text, Integer* value) {
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && rest == end && std::to_string(*value) == text;
}

}  // namespace ecpipe
