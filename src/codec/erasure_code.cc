// SPDX-License-Identifier: Apache-2.0
#include "codec/erasure_code.h"

#include <charconv>

#include "base/status.h"
#include "codec/linear_code.h"
#include "codec/local_reconstruction.h"
#include "codec/qfs_codes.h"
#include "codec/reed_solomon.h"
#include "codec/rotated_reed_solomon.h"
#include "model/systems/hdfs_policy.h"

namespace ecpipe {
namespace {

// The canonical name makes the same code again.
std::shared_ptr<const ErasureCode> Named(const std::string& family, Matrix generator) {
  const std::string name = family + "(" + std::to_string(generator.rows()) + "," +
                           std::to_string(generator.columns()) + ")";
  return std::make_shared<const LinearCode>(name, std::move(generator));
}

using Code = absl::StatusOr<std::shared_ptr<const ErasureCode>>;

Code RsCauchy(const std::vector<int>& parameters) {
  ECPIPE_ASSIGN_OR_RETURN(Matrix generator, CauchyGenerator(parameters[0], parameters[1]));
  return Named("rs-cauchy", std::move(generator));
}

Code RsVandermonde(const std::vector<int>& parameters) {
  ECPIPE_ASSIGN_OR_RETURN(Matrix generator, VandermondeGenerator(parameters[0], parameters[1]));
  return Named("rs-vandermonde", std::move(generator));
}

Code RsLegacy(const std::vector<int>& parameters) {
  ECPIPE_ASSIGN_OR_RETURN(Matrix generator, LegacyGenerator(parameters[0], parameters[1]));
  return Named("rs-legacy", std::move(generator));
}

Code Xor(const std::vector<int>& parameters) {
  ECPIPE_ASSIGN_OR_RETURN(Matrix generator, XorGenerator(parameters[0], parameters[1]));
  return Named("xor", std::move(generator));
}

Code Lrc(const std::vector<int>& parameters) {
  return LocalReconstructionCode::Create(parameters[0], parameters[1], parameters[2]);
}

Code RotatedRs(const std::vector<int>& parameters) {
  return RotatedReedSolomonCode::Create(parameters[0], parameters[1], {2, 32768});
}

Code RotatedRsOfLayout(const std::vector<int>& parameters) {
  if (parameters[2] < 0 || parameters[3] < 0) {
    return absl::InvalidArgumentError("rotated-rs: rows and unit must not be negative");
  }
  const BlockLayout layout{static_cast<uint32_t>(parameters[2]),
                           static_cast<uint32_t>(parameters[3])};
  return RotatedReedSolomonCode::Create(parameters[0], parameters[1], layout);
}

// QFS counts the parities, not all blocks.
std::shared_ptr<const ErasureCode> NamedByQfs(const std::string& family, Matrix generator) {
  const int k = generator.columns();
  const std::string name =
      family + "(" + std::to_string(k) + "," + std::to_string(generator.rows() - k) + ")";
  return std::make_shared<const LinearCode>(name, std::move(generator));
}

Code QfsRs(const std::vector<int>& parameters) {
  ECPIPE_ASSIGN_OR_RETURN(Matrix generator, QfsRsGenerator(parameters[0], parameters[1]));
  return NamedByQfs("qfs-rs", std::move(generator));
}

Code QfsJerasure(const std::vector<int>& parameters) {
  ECPIPE_ASSIGN_OR_RETURN(Matrix generator, QfsJerasureGenerator(parameters[0], parameters[1]));
  return NamedByQfs("qfs-jerasure", std::move(generator));
}

// A code family: the name that it answers to, and what makes a code of its parameters.
struct Family {
  const char* name;
  std::vector<const char*> parameters;
  Code (*create)(const std::vector<int>& parameters);
};

const std::vector<Family>& Families() {
  static const std::vector<Family> families = {
      {"rs", {"n", "k"}, RsCauchy},
      {"rs-cauchy", {"n", "k"}, RsCauchy},
      {"rs-vandermonde", {"n", "k"}, RsVandermonde},
      {"rs-legacy", {"n", "k"}, RsLegacy},
      {"xor", {"n", "k"}, Xor},
      {"lrc", {"k", "groups", "global"}, Lrc},
      {"rotated-rs", {"n", "k"}, RotatedRs},
      {"rotated-rs", {"n", "k", "rows", "unit"}, RotatedRsOfLayout},
      {"qfs-rs", {"k", "m"}, QfsRs},
      {"qfs-jerasure", {"k", "m"}, QfsJerasure},
  };
  return families;
}

struct ParsedName {
  std::string family;
  std::vector<int> parameters;
};

// "family(1,2,...)", blanks allowed after commas.
absl::StatusOr<ParsedName> Parse(const std::string& name) {
  const auto bad = [&] {
    return absl::InvalidArgumentError("'" + name + "' is not a code; write for example rs(14,10)");
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

template <typename Texts>
std::string Joined(const Texts& texts, const char* separator) {
  std::string joined;
  for (const auto& text : texts) joined += (joined.empty() ? "" : separator) + std::string(text);
  return joined;
}

absl::Status NoSuchCode(const std::string& name, const std::string& family_name) {
  std::vector<std::string> known;
  std::string forms;
  for (const Family& family : Families()) {
    if (known.empty() || known.back() != family.name) known.push_back(family.name);
    if (family_name != family.name) continue;
    forms += (forms.empty() ? "" : " or ") + std::string(family.name) + "(" +
             Joined(family.parameters, ",") + ")";
  }
  if (!forms.empty()) {
    return absl::InvalidArgumentError("'" + name +
                                      "' has the wrong number of parameters; the form is " + forms);
  }
  return absl::InvalidArgumentError("'" + name + "': unknown code family '" + family_name +
                                    "'; known are " + Joined(known, ", "));
}

}  // namespace

std::string WhyUndetermined(const ErasureCode& code, const std::vector<std::string>& survivors) {
  const std::string k = "k = " + std::to_string(code.k()) + " blocks";
  const std::string count = std::to_string(survivors.size());
  if (survivors.size() < static_cast<size_t>(code.k())) {
    return k + " are needed, but only " + count + " survivors can be used";
  }
  return "the " + count + " survivors that can be used do not determine it, since of code " +
         code.name() + " not any " + k + " do: " + Joined(survivors, ", ");
}

absl::StatusOr<std::shared_ptr<const ErasureCode>> CreateErasureCode(const std::string& name) {
  ECPIPE_ASSIGN_OR_RETURN(const std::string own_name, NameOfHdfsPolicy(name));
  ECPIPE_ASSIGN_OR_RETURN(const ParsedName parsed, Parse(own_name));
  for (const Family& family : Families()) {
    if (parsed.family == family.name && parsed.parameters.size() == family.parameters.size()) {
      return family.create(parsed.parameters);
    }
  }
  return NoSuchCode(name, parsed.family);
}

}  // namespace ecpipe
