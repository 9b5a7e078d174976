// SPDX-License-Identifier: Apache-2.0
#include "base/bytes/number_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/bytes/utf8_text.h"
#include "base/check.h"

namespace ecpipe {
namespace {

std::string ShortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

}  // namespace

absl::StatusOr<double> ParseNumber(const std::string& text, double least, double most) {
  ECPIPE_CHECK(std::isfinite(least) && std::isfinite(most));
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  // It takes "nan" and "inf". Comparisons with a NaN are false.
  if (error == std::errc() && rest == end && value >= least && value <= most) return value;
  return absl::InvalidArgumentError(QuotedText(text) + " is not a number from " +
                                    ShortNumber(least) + " to " + ShortNumber(most));
}

std::function<std::string(const std::string& text)> NumberFrom(double least, double most) {
  return [least, most](const std::string& text) {
    return std::string(ParseNumber(text, least, most).status().message());
  };
}

}  // namespace ecpipe
