// SPDX-License-Identifier: Apache-2.0
#include "codec/erasure_code.h"

#include <charconv>

#include "codec/linear_code.h"
#include "codec/reed_solomon.h"
#include "common/status.h"

namespace ecpipe {
namespace {

// A code family: the names that it answers to, and what makes its generator.
struct Family {
  const char* name;
  const char* canonical;
  absl::StatusOr<Matrix> (*generator)(int n, int k);
};

constexpr Family kFamilies[] = {
    {"rs", "rs-cauchy", CauchyGenerator},
    {"rs-cauchy", "rs-cauchy", CauchyGenerator},
    {"rs-vandermonde", "rs-vandermonde", VandermondeGenerator},
};

struct ParsedName {
  std::string family;
  std::vector<int> parameters;
};

// "family(1,2,...)", blanks allowed after commas.
absl::StatusOr<ParsedName> Parse(const std::string& name) {
  const auto bad = [&] {
    return absl::InvalidArgumentError("'" + name + "' is not a code; write e.g. rs(14,10)");
  };
  const size_t open = name.find('(');
  if (open == std::string::npos || open == 0 || name.back() != ')') return bad();
  ParsedName parsed{name.substr(0, open), {}};
  const char* at = name.data() + open + 1;
  const char* const end = name.data() + name.size() - 1;
  while (true) {
    while (at < end && *at == ' ') ++at;
    int value = 0;
    const auto [rest, error] = std::from_chars(at, end, value);
    if (error != std::errc()) return bad();
    parsed.parameters.push_back(value);
    if (rest == end) return parsed;
    if (*rest != ',') return bad();
    at = rest + 1;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ErasureCode>> CreateErasureCode(const std::string& name) {
  ECPIPE_ASSIGN_OR_RETURN(const ParsedName parsed, Parse(name));
  std::string known;
  for (const Family& family : kFamilies) {
    known += (known.empty() ? "" : ", ") + std::string(family.name);
    if (parsed.family != family.name) continue;
    if (parsed.parameters.size() != 2) {
      return absl::InvalidArgumentError("'" + name + "': " + family.name +
                                        " takes two parameters, (n,k)");
    }
    const int n = parsed.parameters[0];
    const int k = parsed.parameters[1];
    ECPIPE_ASSIGN_OR_RETURN(Matrix generator, family.generator(n, k));
    const std::string canonical = std::string(family.canonical) + "(" + std::to_string(n) + "," +
                                  std::to_string(k) + ")";
    return std::make_shared<const LinearCode>(canonical, std::move(generator));
  }
  return absl::InvalidArgumentError("'" + name + "': unknown code family '" + parsed.family +
                                    "'; known are " + known);
}

}  // namespace ecpipe
