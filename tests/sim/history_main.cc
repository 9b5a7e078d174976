// SPDX-License-Identifier: Apache-2.0
// ecpipe_history: judges a history that somebody else has written down, such as bench/lab.py chaos
// from the logs of real daemons. Standard input has one JSON object a line, an event, in order:
//
//   {"kind": "moved", "block": "photo.3", "node": "node-7", "recovery": 4}
//
// Prints what must not happen, a line each. Exit code: 0 if nothing of that does, 1 if something
// does, 2 if a line is no event.
#include <cstdio>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "sim/history.h"

namespace ecpipe::sim {
namespace {

using Kind = HistoryEvent::Kind;

const std::map<std::string, Kind> kKinds = {
    {"placed", Kind::kPlaced},          {"moved", Kind::kMoved},
    {"recovered", Kind::kRecovered},    {"node_starts", Kind::kNodeStarts},
    {"part_begins", Kind::kPartBegins}, {"part_ends", Kind::kPartEnds},
    {"handed_over", Kind::kHandedOver}, {"goes_on", Kind::kGoesOn}};

// Throws nlohmann::json::exception, or std::exception, if the line is no event.
HistoryEvent Parse(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line);
  HistoryEvent event;
  const auto kind = kKinds.find(json.at("kind").get<std::string>());
  if (kind == kKinds.end()) throw std::invalid_argument("no such kind");
  event.kind = kind->second;
  event.stripe = json.value("stripe", "");
  event.block = json.value("block", "");
  event.node = json.value("node", "");
  event.reader = json.value("reader", "");
  event.recovery = json.value("recovery", RecoveryId{0});
  event.repair = std::stoull(json.value("repair", "0"), nullptr, 16);
  event.attempt = json.value("attempt", 0U);
  event.offset = json.value("offset", uint64_t{0});
  event.bytes = json.value("bytes", uint64_t{0});
  return event;
}

int Main() {
  std::vector<HistoryEvent> history;
  std::string line;
  for (size_t number = 1; std::getline(std::cin, line); ++number) {
    try {
      history.push_back(Parse(line));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "ecpipe_history: line %zu is no event: %s\n", number, error.what());
      return 2;
    }
  }
  const std::vector<std::string> faults = JudgeHistory(history);
  for (const std::string& fault : faults) std::printf("%s\n", fault.c_str());
  return faults.empty() ? 0 : 1;
}

}  // namespace
}  // namespace ecpipe::sim

int main() { return ecpipe::sim::Main(); }
