// SPDX-License-Identifier: Apache-2.0
// What one seed stands for: a cluster, what is asked of it, and what goes wrong meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/store/catalog.h"
#include "requestor/client/coordinator_api.h"
#include "sim/network.h"
#include "sim/random.h"

namespace ecpipe::sim {

struct Scenario {
  enum class Trouble {
    kNone,  // nothing goes wrong: everything that is asked must succeed
    kSome,  // one or two things
    kMuch,  // many, and the network is bad throughout
  };
  struct Operation {
    enum class Kind {
      kRead,
      kReadSeveral,  // two blocks of a stripe at once
      kReadDirect,   // of a block that is there
      kRepairToNodes,
      kRepairSeveralToNodes,  // two blocks of a stripe, each to a node of its own
      kRecover,
    };
    Duration at{};
    Kind kind = Kind::kRead;
    Duration cancel_after{};  // 0: never
    bool crash = false;       // instead of cancelling
    // Of a recovery: how long the node may come back, and what the operator does, one after the
    // other, so long after the step before it.
    double delay_seconds = -1;
    struct Step {
      Duration after{};
      RecoveryChange change = RecoveryChange::kPause;
    };
    std::vector<Step> steps;
  };
  struct Action {
    enum class Kind {
      kCrashHelper,
      kCrashCoordinator,
      kIsolate,
      kCutLink,
      kSlowNode,
      kDiskFault,
      kLoseBlock,
      kWrongWord,  // a requestor calls a healthy block corrupt
    };
    Duration at{};
    Duration lasts{};
    Kind kind = Kind::kCrashHelper;
  };

  Trouble trouble = Trouble::kNone;
  std::string code;
  int nodes = 0;
  int stripes = 0;
  uint64_t block_bytes = 0;
  uint32_t slice_bytes = 0;
  NetworkOptions network;
  // Whether the operator has written down a speed for each pair of nodes. They differ, and rp-flow
  // then plans many lanes.
  bool known_links = false;
  // Nodes whose helpers are of an earlier version until everything is mended.
  int older_nodes = 0;
  struct Limits {
    uint32_t running_repairs = 10'000;
    uint32_t streams_per_node = 8;
    uint32_t sessions = 64;
  };
  Limits limits;           // until everything is mended
  bool marked = false;     // an earlier coordinator found a block corrupt
  double fault_point = 0;  // probability that a named fault point strikes when it is passed
  std::vector<Operation> operations;
  std::vector<Action> actions;
  bool lasting = false;  // what actions break stays broken until everything is mended
  Duration chaos{};      // all of the above is over by then
};

Scenario MakeScenario(Random* random);

// One line.
std::string Describe(const Scenario& scenario);

}  // namespace ecpipe::sim
