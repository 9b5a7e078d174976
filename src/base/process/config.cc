// SPDX-License-Identifier: Apache-2.0
#include "base/process/config.h"

#include <toml++/toml.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/bytes/size_text.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// Nothing here is waited for less long, and much less would be rounded to no time at all.
constexpr double kLeastSeconds = 0.001;

std::string TomlText(const toml::node& node) {
  std::ostringstream text;
  text << toml::toml_formatter(
      node, toml::toml_formatter::default_flags & ~toml::format_flags::allow_literal_strings);
  return text.str();
}

// As ParseSize reads it back: FormatSize would round.
std::string SizeText(uint64_t bytes) {
  constexpr uint64_t kUnit = 1024;
  const char* unit = "";
  for (const char* const larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes == 0 || bytes % kUnit != 0) break;
    bytes /= kUnit;
    unit = larger;
  }
  return *unit == '\0' ? std::to_string(bytes) : '"' + std::to_string(bytes) + unit + '"';
}

}  // namespace

std::string ConfigText(const ConfigValues& values) {
  std::string text;
  std::string section;
  for (const auto& [key, value] : values) {
    const size_t dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      text += (text.empty() ? "[" : "\n[") + section + "]\n";
    }
    text += key.substr(dot + 1) + " = " + value + "\n";
  }
  return text;
}

struct Config::State {
  std::string name;
  toml::table root;
  ConfigValues values;                            // of all keys that are known
  std::multimap<uint32_t, std::string> troubles;  // by line; 0: of the file as a whole

  void Fail(const toml::source_region& where, const std::string& what) {
    const uint32_t line = where.begin.line;
    troubles.emplace(line, name + (line == 0 ? "" : ":" + std::to_string(line)) + ": " + what);
  }
  void Fail(const toml::node& node, const std::string& what) { Fail(node.source(), what); }

  const toml::node* Find(const std::string& key) {
    values.try_emplace(key);
    return root.at_path(key).node();
  }

  // The node, or null after having recorded that it is missing.
  const toml::node* Require(const std::string& key) {
    const toml::node* node = Find(key);
    if (node == nullptr) Fail(toml::source_region{}, "required key " + key + " is missing");
    return node;
  }

  std::string ExpectString(const toml::node& node, const std::string& key) {
    const auto value = node.value_exact<std::string>();
    if (!value) Fail(node, key + " must be a string");
    return value.value_or("");
  }

  std::vector<std::string> ExpectStrings(const toml::node& node, const std::string& key) {
    std::vector<std::string> strings;
    const toml::array* array = node.as_array();
    if (array == nullptr) {
      Fail(node, key + " must be a list of strings");
      return strings;
    }
    for (const toml::node& element : *array) strings.push_back(ExpectString(element, key));
    return strings;
  }

  // None where `node` is null.
  std::vector<std::string> StringsOf(const toml::node* node, const std::string& key) {
    std::vector<std::string> strings;
    if (node != nullptr) strings = ExpectStrings(*node, key);
    toml::array array;
    for (const std::string& text : strings) array.push_back(text);
    values[key] = TomlText(array);
    return strings;
  }

  void RejectUnknown(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      // A dot within a key belongs to its name, and no getter asks for such a key.
      const bool plain = key.str().find('.') == std::string_view::npos;
      const std::string path =
          prefix + (plain ? std::string(key.str()) : '"' + std::string(key.str()) + '"');
      if (values.count(path) != 0) continue;
      if (const toml::table* inner = node.as_table(); inner != nullptr && IsSection(path)) {
        RejectUnknown(*inner, path + ".");
      } else {
        Fail(key.source(), "unknown key " + path + KnownIn(prefix));
      }
    }
  }

  bool IsSection(const std::string& path) const {
    const auto after = values.lower_bound(path + ".");
    return after != values.end() && after->first.rfind(path + ".", 0) == 0;
  }

  std::string KnownIn(const std::string& prefix) const {
    std::string text;
    for (const auto& [key, value] : values) {
      if (key.rfind(prefix, 0) == 0) text += (text.empty() ? "" : ", ") + key;
    }
    return text.empty() ? "" : "; known here: " + text;
  }
};

Config::Config(std::unique_ptr<State> state) : state_(std::move(state)) {}
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;
Config::~Config() = default;

absl::StatusOr<Config> Config::Load(const std::string& path) {
  std::ifstream file(path);
  if (!file) return ErrnoStatus(errno, "open " + path);
  std::ostringstream text;
  text << file.rdbuf();
  return Parse(text.str(), path);
}

absl::StatusOr<Config> Config::Parse(const std::string& text, const std::string& name) {
  auto state = std::make_unique<State>();
  state->name = name;
  try {  // Debian's library is built with exceptions
    state->root = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    return absl::InvalidArgumentError(name + ":" + std::to_string(at.line) + ":" +
                                      std::to_string(at.column) + ": " +
                                      std::string(error.description()));
  }
  return Config(std::move(state));
}

std::string Config::String(const std::string& key, const std::string& fallback) {
  const toml::node* node = state_->Find(key);
  std::string value = node == nullptr ? fallback : state_->ExpectString(*node, key);
  state_->values[key] = TomlText(toml::value<std::string>(value));
  return value;
}

std::string Config::RequiredString(const std::string& key) {
  const toml::node* node = state_->Require(key);
  if (node == nullptr) return "";
  std::string value = state_->ExpectString(*node, key);
  if (node->is_string() && value.empty()) state_->Fail(*node, key + " must not be empty");
  state_->values[key] = TomlText(toml::value<std::string>(value));
  return value;
}

std::vector<std::string> Config::Strings(const std::string& key) {
  return state_->StringsOf(state_->Find(key), key);
}

std::vector<std::string> Config::RequiredStrings(const std::string& key) {
  const toml::node* node = state_->Require(key);
  std::vector<std::string> values = state_->StringsOf(node, key);
  if (node != nullptr && node->is_array() && values.empty()) {
    state_->Fail(*node, key + " must name at least one");
  }
  return values;
}

int64_t Config::Integer(const std::string& key, int64_t fallback, int64_t least, int64_t most) {
  const toml::node* node = state_->Find(key);
  int64_t result = fallback;
  if (node != nullptr) {
    const auto value = node->value_exact<int64_t>();
    if (value && *value >= least && *value <= most) {
      result = *value;
    } else {
      state_->Fail(*node, key + " must be an integer from " + std::to_string(least) + " to " +
                              std::to_string(most));
    }
  }
  state_->values[key] = std::to_string(result);
  return result;
}

uint64_t Config::Size(const std::string& key, uint64_t fallback, uint64_t least, uint64_t most) {
  const toml::node* node = state_->Find(key);
  uint64_t result = fallback;
  if (node != nullptr) {
    absl::StatusOr<uint64_t> bytes = absl::InvalidArgumentError("not a size");
    if (const auto text = node->value_exact<std::string>()) {
      bytes = ParseSize(*text);
    } else if (const auto number = node->value_exact<int64_t>(); number && *number >= 0) {
      bytes = static_cast<uint64_t>(*number);
    }
    if (bytes.ok() && *bytes >= least && *bytes <= most) {
      result = *bytes;
    } else {
      state_->Fail(*node, key + " must be a size from " + FormatSize(least) + " to " +
                              FormatSize(most) + ", e.g. 65536 or \"64KiB\"");
    }
  }
  state_->values[key] = SizeText(result);
  return result;
}

double Config::Seconds(const std::string& key, double fallback, double most) {
  const toml::node* node = state_->Find(key);
  double result = fallback;
  if (node != nullptr) {
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (value && *value >= kLeastSeconds && *value <= most) {
      result = *value;
    } else {
      state_->Fail(*node, key + " must be a number of seconds from 0.001 to " +
                              std::to_string(static_cast<int64_t>(most)));
    }
  }
  state_->values[key] = TomlText(toml::value<double>(result));
  return result;
}

double Config::Rate(const std::string& key, int64_t fallback_mbit) {
  constexpr int64_t kFastestMbit = 10'000'000;
  const int64_t least = std::min<int64_t>(1, fallback_mbit);
  return 1e6 / 8 * static_cast<double>(Integer(key, fallback_mbit, least, kFastestMbit));
}

bool Config::Bool(const std::string& key, bool fallback) {
  const toml::node* node = state_->Find(key);
  const auto value = node == nullptr ? fallback : node->value_exact<bool>();
  if (!value) state_->Fail(*node, key + " must be true or false");
  const bool result = value.value_or(fallback);
  state_->values[key] = result ? "true" : "false";
  return result;
}

void Config::Reject(const std::string& key, const std::string& reason) {
  ConfigTroubles one;
  one.Add(key, absl::InvalidArgumentError(reason));
  Reject(one);
}

void Config::Reject(const ConfigTroubles& troubles) {
  // What a getter has refused already is not the caller's value, but the default.
  std::set<uint32_t> refused;
  for (const auto& [line, trouble] : state_->troubles) refused.insert(line);
  for (const ConfigTroubles::Trouble& trouble : troubles.all()) {
    const std::string& key = trouble.key;
    const toml::node* node = state_->root.at_path(key).node();
    const toml::source_region where = node == nullptr ? toml::source_region{} : node->source();
    if (node != nullptr && refused.contains(where.begin.line)) continue;
    state_->Fail(where, key + ": " + std::string(trouble.why.message()));
  }
}

absl::Status Config::Finish() {
  state_->RejectUnknown(state_->root, "");
  std::string text;
  for (const auto& [line, trouble] : state_->troubles) text += (text.empty() ? "" : "\n") + trouble;
  return text.empty() ? absl::OkStatus() : absl::InvalidArgumentError(text);
}

const ConfigValues& Config::values() const { return state_->values; }

}  // namespace ecpipe
