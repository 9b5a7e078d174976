// SPDX-License-Identifier: Apache-2.0
// How operators of a storage system call its parts, for texts of the command.
#pragma once

#include <array>
#include <string>

namespace ecpipe {

struct SystemWords {
  const char* system;   // as the coordinator says it
  const char* name;     // "HDFS"
  const char* node;     // "DataNode"
  const char* manager;  // "NameNode"
  const char* stripe;   // "block group"
  const char* setting;  // of coordinator.toml: where the manager is named
};

// A system that this command does not know is called by general words.
inline SystemWords WordsOf(const std::string& system) {
  static constexpr std::array<SystemWords, 2> kWords = {{
      {"hdfs", "HDFS", "DataNode", "NameNode", "block group", "[hdfs] namenodes"},
      {"qfs", "QFS", "chunkserver", "metaserver", "stripe", "[qfs] metaservers"},
  }};
  for (const SystemWords& words : kWords) {
    if (system == words.system) return words;
  }
  return {"", "the storage system", "storage node", "manager", "stripe", "its section"};
}

}  // namespace ecpipe
