// SPDX-License-Identifier: Apache-2.0
// /status.json; docs/status-page.md tells its fields. Pure.
#pragma once

#include <string>

#include "coordinator/pages/status_snapshot.h"

namespace ecpipe {

// What is shown at most, so that a page of the largest cluster can be read, and is made and sent in
// no time. What is left out is counted.
struct ShownAtMost {
  size_t nodes = 600;
  size_t repairs = 24;  // that run; helpers are asked about each of them
  size_t ended = 20;    // repairs
  size_t recoveries = 20;
  size_t waiting = 50;
  size_t links = 256;       // of a repair
  size_t names = 16;        // of blocks and hosts of a repair, of waits and of failed roots
  size_t text_bytes = 400;  // of a text; names of nodes and blocks are 255 at most
};

// JSON in clean UTF-8, whatever the texts of the snapshot are.
std::string StatusJson(const StatusSnapshot& snapshot, const ShownAtMost& most = {});

}  // namespace ecpipe
