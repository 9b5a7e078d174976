// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/marks_text.h"

#include <nlohmann/json.hpp>

#include "requestor/cli/system_words.h"

namespace ecpipe {
namespace {

std::string WhatToDo(const CorruptBlockStatus& block) {
  if (block.suspect && block.undecided.empty()) return "it is being checked";
  if (!block.system.empty()) {
    return std::string(WordsOf(block.system).name) + " rebuilds the block once it knows";
  }
  return block.RepairCommand() + (block.suspect ? " --verify parity" : "");
}

std::string MarksOf(const std::vector<CorruptBlockStatus>& blocks, bool suspect,
                    const std::string& title) {
  std::string text;
  for (const CorruptBlockStatus& block : blocks) {
    if (block.suspect != suspect) continue;
    if (text.empty()) text = title;
    text += block.block_id + " on " + block.node + ": " + block.reason +
            (block.undecided.empty() ? "" : " (" + block.undecided + ")") + "\n    " +
            WhatToDo(block) + "\n";
  }
  return text;
}

}  // namespace

std::string MarksAsText(const std::vector<CorruptBlockStatus>& blocks) {
  return MarksOf(blocks, false,
                 "\ncorrupt blocks; repairs do not read them until they are repaired:\n") +
         MarksOf(blocks, true,
                 "\nsuspects, which others call corrupt; repairs avoid them, and verify by parity "
                 "what they read of them:\n");
}

nlohmann::ordered_json MarkAsJson(const CorruptBlockStatus& block) {
  return {
      {"block_id", block.block_id},
      {"node", block.node},
      {"reason", block.reason},
      {"found_unix_ms", block.found_unix_ms},
      {"suspect", block.suspect},
      {"undecided", block.undecided},
      {"hdfs", block.system == "hdfs"},
      {"system", block.system},
      {"repair", block.system.empty() ? nlohmann::ordered_json(block.RepairCommand()) : nullptr}};
}

}  // namespace ecpipe
