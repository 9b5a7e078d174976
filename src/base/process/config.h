// SPDX-License-Identifier: Apache-2.0
// A daemon's configuration file: TOML, strict. Every key must be known and of the right type, or
// the daemon refuses to start with file and line.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/process/config_troubles.h"

namespace ecpipe {

// By key, "section.name"; values as a TOML file has them.
using ConfigValues = std::map<std::string, std::string>;

// A TOML file with these values.
std::string ConfigText(const ConfigValues& values);

// Read with the getters, then call Finish(). A getter never fails: on a wrong value it returns the
// default, and each trouble is kept for Finish(). Keys are "section.name".
class Config {
 public:
  // NOT_FOUND when there is no such file; INVALID_ARGUMENT with "file:line:column" for bad TOML.
  static absl::StatusOr<Config> Load(const std::string& path);
  // The same from memory; `name` stands for the file in messages.
  static absl::StatusOr<Config> Parse(const std::string& text, const std::string& name);

  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  std::string String(const std::string& key, const std::string& fallback);
  std::string RequiredString(const std::string& key);
  // Strings() is empty where there is no such key; RequiredStrings() wants at least one.
  std::vector<std::string> Strings(const std::string& key);
  std::vector<std::string> RequiredStrings(const std::string& key);
  int64_t Integer(const std::string& key, int64_t fallback, int64_t least, int64_t most);
  // Bytes: an integer, or a string such as "512MiB".
  uint64_t Size(const std::string& key, uint64_t fallback, uint64_t least, uint64_t most);
  // Seconds, integer or fraction, at least 0.001.
  double Seconds(const std::string& key, double fallback, double most);
  // Bytes a second, from megabits in the file. A fallback of 0 stands for no limit, and may be
  // given.
  double Rate(const std::string& key, int64_t fallback_mbit);
  bool Bool(const std::string& key, bool fallback);

  // Records that the value of a key is unacceptable for a reason that only the caller knows.
  void Reject(const std::string& key, const std::string& reason);
  // The same for all of these, which may be several of one key.
  void Reject(const ConfigTroubles& troubles);

  // INVALID_ARGUMENT with a line "file:line: ..." for each trouble, and for each key that no getter
  // asked for, in the order of the file.
  absl::Status Finish();

  // The value of each key that a getter has asked for, be it from the file or the fallback.
  const ConfigValues& values() const;

 private:
  struct State;
  explicit Config(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ecpipe
