// SPDX-License-Identifier: Apache-2.0
#include "model/systems/hdfs_policy.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>


namespace ecpipe {
namespace {

constexpr char kPolicyPrefix[] = "hdfs:";

// A whole text of digits, of a size that a policy can have.
std::optional<int> NumberIn(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool good = error == std::errc() && rest == end && value > 0 && text[0] != '0';
  return good ? std::optional(value) : std::nullopt;
}

// The bytes of a cell size such as "1024k"; 0 if it is none.
uint64_t CellBytes(const std::string& text) {
  if (text.size() < 2 || text.back() != 'k') return 0;
  return uint64_t{1024} *
         static_cast<uint64_t>(NumberIn(text.substr(0, text.size() - 1)).value_or(0));
}

std::vector<std::string> SplitAtDashes(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

absl::StatusOr<std::string> NameOfHdfsCodec(const std::string& codec, int data, int parity) {
  constexpr std::array<std::pair<const char*, const char*>, 3> kCodecs = {
      {{"rs", "rs-cauchy"}, {"rs-legacy", "rs-legacy"}, {"xor", "xor"}}};
  for (const auto& [theirs, ours] : kCodecs) {
    if (codec != theirs) continue;
    return std::string(ours) + "(" + std::to_string(data + parity) + "," + std::to_string(data) +
           ")";
  }
  return absl::InvalidArgumentError("'" + codec +
                                    "' is not an HDFS codec; known are rs, rs-legacy, xor");
}

absl::StatusOr<HdfsPolicy> ParseHdfsPolicy(const std::string& name) {
  HdfsPolicy policy;
  std::string rest;
  for (const auto& [begin, known] :
       {std::pair("RS-LEGACY-", "rs-legacy"), {"RS-", "rs"}, {"XOR-", "xor"}}) {
    if (name.rfind(begin, 0) != 0) continue;
    policy.codec = known;
    rest = name.substr(std::string(begin).size());
    break;
  }
  const std::vector<std::string> words = SplitAtDashes(rest);
  if (words.size() == 3) policy.cell_bytes = CellBytes(words[2]);
  const bool counted = words.size() == 2 || policy.cell_bytes > 0;
  policy.data = counted ? NumberIn(words[0]).value_or(0) : 0;
  policy.parity = counted ? NumberIn(words[1]).value_or(0) : 0;
  constexpr int kMost = 255;
  if (policy.codec.empty() || policy.data == 0 || policy.parity == 0 || policy.data > kMost ||
      policy.parity > kMost) {
    return absl::InvalidArgumentError(
        "'" + name + "' is not an HDFS erasure coding policy; the form is RS-6-3-1024k");
  }
  return policy;
}

absl::StatusOr<std::string> NameOfHdfsPolicy(const std::string& name) {
  if (name.rfind(kPolicyPrefix, 0) != 0) return name;
  const absl::StatusOr<HdfsPolicy> policy = ParseHdfsPolicy(name.substr(sizeof kPolicyPrefix - 1));
  if (!policy.ok()) {
    return absl::InvalidArgumentError(
        "'" + name + "' is not an HDFS erasure coding policy; write for example hdfs:RS-6-3");
  }
  return NameOfHdfsCodec(policy->codec, policy->data, policy->parity);
}

}  // namespace ecpipe
