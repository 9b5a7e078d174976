// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/request_fields.h"

#include <utility>

namespace ecpipe {
namespace {

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

RequestFields::RequestFields(const std::string& text) {
  for (size_t at = 0; at < text.size() && status_.ok();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      Refuse("the last line has no line end");
      break;
    }
    AddLine(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string RequestFields::Text(const std::string& key, std::optional<std::string> fallback) {
  const auto found = values_.find(key);
  if (found == values_.end()) {
    if (!fallback) Refuse("'" + key + "' is missing");
    return fallback.value_or("");
  }
  std::string value = std::move(found->second);
  values_.erase(found);
  return value;
}

std::vector<StripeFacts::Source> RequestFields::Sources(size_t most) {
  std::vector<StripeFacts::Source> sources;
  if (sources_.size() > most) {
    Refuse("there are more than " + std::to_string(most) + " sources");
    return sources;
  }
  for (const std::string& line : sources_) {
    const size_t blank = line.find(' ');
    StripeFacts::Source& source = sources.emplace_back();
    if (blank == std::string::npos || !ReadExactInteger(line.substr(0, blank), &source.index)) {
      Refuse("a source is not a block index followed by an id");
      break;
    }
    source.storage_id = line.substr(blank + 1);
  }
  sources_.clear();
  return sources;
}

void RequestFields::Refuse(const std::string& why) {
  if (status_.ok()) status_ = absl::InvalidArgumentError(why);
}

absl::Status RequestFields::Finish() {
  if (!values_.empty()) Refuse("'" + values_.begin()->first + "' is not a known key");
  if (!sources_.empty()) Refuse("'source' is not a known key");
  return status_;
}

void RequestFields::AddLine(const std::string& line) {
  const size_t blank = line.find(' ');
  if (!IsPrintable(line) || blank == 0 || blank == std::string::npos) {
    return Refuse("a line is not a key followed by a value");
  }
  const std::string key = line.substr(0, blank);
  std::string value = line.substr(blank + 1);
  if (key == "source") {
    sources_.push_back(std::move(value));
  } else if (!values_.emplace(key, std::move(value)).second) {
    Refuse("'" + key + "' is given twice");
  }
}

}  // namespace ecpipe
