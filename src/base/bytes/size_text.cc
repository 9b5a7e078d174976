// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/size_text.h"

#include <charconv>
#include <cstdio>

#include "base/bytes/utf8_text.h"

namespace ecpipe {
namespace {

constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};

}  // namespace

absl::StatusOr<uint64_t> ParseSize(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc()) {
    const std::string unit(rest, end);
    for (int power = 0; power < 5; ++power) {
      const uint64_t factor = uint64_t{1} << (10 * power);
      if (unit == kUnits[power] && value <= UINT64_MAX / factor) return value * factor;
    }
  }
  return absl::InvalidArgumentError(QuotedText(text) +
                                    " is not a size; write bytes, or e.g. 32KiB, 64MiB, 1GiB");
}

std::string FormatSize(uint64_t bytes) {
  int power = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && power < 4) {
    value /= 1024;
    ++power;
  }
  char text[32];
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value,
                power == 0 ? "B" : kUnits[power]);
  return text;
}

}  // namespace ecpipe
