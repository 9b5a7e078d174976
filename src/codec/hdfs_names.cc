// SPDX-License-Identifier: Apache-2.0
#include "codec/hdfs_names.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "common/status.h"

namespace ecpipe {
namespace {

constexpr char kPrefix[] = "hdfs:";

// A whole text of digits, of a size that a policy can have.
std::optional<int> NumberIn(const std::string& text) {
  int value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool good = error == std::errc() && rest == end && value > 0 && text[0] != '0';
  return good ? std::optional(value) : std::nullopt;
}

bool IsCellSize(const std::string& text) {
  return text.size() > 1 && text.back() == 'k' && NumberIn(text.substr(0, text.size() - 1));
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
                                    "' is not a codec of HDFS; known are rs, rs-legacy, xor");
}

absl::StatusOr<std::string> NameOfHdfsPolicy(const std::string& name) {
  if (name.rfind(kPrefix, 0) != 0) return name;
  const std::string policy = name.substr(sizeof kPrefix - 1);
  std::string codec;
  std::string rest;
  for (const auto& [begin, known] :
       {std::pair("RS-LEGACY-", "rs-legacy"), {"RS-", "rs"}, {"XOR-", "xor"}}) {
    if (policy.rfind(begin, 0) != 0) continue;
    codec = known;
    rest = policy.substr(std::string(begin).size());
    break;
  }
  const std::vector<std::string> words = SplitAtDashes(rest);
  const bool counted = words.size() == 2 || (words.size() == 3 && IsCellSize(words[2]));
  const std::optional<int> data = counted ? NumberIn(words[0]) : std::nullopt;
  const std::optional<int> parity = counted ? NumberIn(words[1]) : std::nullopt;
  constexpr int kMost = 255;
  if (codec.empty() || !data || !parity || *data > kMost || *parity > kMost) {
    return absl::InvalidArgumentError("'" + name +
                                      "' is not a policy of HDFS; write e.g. hdfs:RS-6-3");
  }
  return NameOfHdfsCodec(codec, *data, *parity);
}

}  // namespace ecpipe
