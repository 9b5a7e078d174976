// SPDX-License-Identifier: Apache-2.0
// The lines of a request to the endpoint: "KEY VALUE" each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes/exact_integer.h"
#include "model/stripe_facts.h"

namespace ecpipe {

// The values of a request by their keys, each of which is asked for once. The first trouble is
// kept.
class RequestFields {
 public:
  explicit RequestFields(const std::string& text);

  // Without a fallback the key must be there.
  std::string Text(const std::string& key, std::optional<std::string> fallback = std::nullopt);

  template <typename Integer>
  Integer Number(const std::string& key, std::optional<Integer> fallback = std::nullopt) {
    if (fallback && !values_.contains(key)) return *fallback;
    Integer value{};
    if (!ReadExactInteger(Text(key), &value))
      Refuse("'" + key + "' is not a number, or is out of its range");
    return value;
  }

  // Numbers with a blank between them; one at least, since a value is never empty.
  template <typename Integer>
  std::vector<Integer> Numbers(const std::string& key) {
    const std::string text = Text(key);
    std::vector<Integer> numbers;
    for (size_t at = 0; at <= text.size() && numbers.size() <= StripeFacts::kMaxBlocks;) {
      const size_t end = std::min(text.find(' ', at), text.size());
      if (!ReadExactInteger(text.substr(at, end - at), &numbers.emplace_back())) {
        Refuse("'" + key + "' is not a list of numbers, or one is out of its range");
        break;
      }
      at = end + 1;
    }
    return numbers;
  }

  // "INDEX ID", of each line "source".
  std::vector<StripeFacts::Source> Sources(size_t most);

  void Refuse(const std::string& why);
  const absl::Status& status() const { return status_; }

  // After all keys have been asked for.
  absl::Status Finish();

 private:
  void AddLine(const std::string& line);

  std::map<std::string, std::string> values_;
  std::vector<std::string> sources_;
  absl::Status status_;
};

}  // namespace ecpipe
