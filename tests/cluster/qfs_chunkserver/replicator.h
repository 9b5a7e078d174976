// SPDX-License-Identifier: Apache-2.0
// A recovery as a chunkserver runs it: reads of a MiB, one after the other, each written before the
// next. The README's lines are in it, and the chunk's siblings take the place of QFS's own
// recovery.
#ifndef ECPIPE_TESTS_QFS_CHUNKSERVER_REPLICATOR_H_
#define ECPIPE_TESTS_QFS_CHUNKSERVER_REPLICATOR_H_

#include <stdint.h>

#include <string>
#include <vector>

#include "host.h"

namespace host {

// The lost chunk is the sum of these over GF(2^8), each times its coefficient.
struct Term {
  int coefficient;
  string chunk_file;  // with its header; zeros where it is too short
};

// What the test says of a recovery.
struct Script {
  string name;
  string output;               // the recovered chunk's bytes, without a header
  int64_t length;              // of the chunk
  int64_t hold_at;             // it waits for `go` before it reads there; -1: nowhere
  int64_t cancel_at;           // it is cancelled once it reads there; -1: nowhere
  std::vector<Term> siblings;  // none: it has no recovery of its own
};

class Replicator {
 public:
  static void SetParameters(const Properties& props);
};

// Goes by itself after it has ended.
class Recovery {
 public:
  virtual void Start() = 0;
  virtual void Go() = 0;
  virtual void Cancel() = 0;

 protected:
  ~Recovery() {}
};

// Prints "held NAME OFFSET" and, at its end, "cancelled NAME OFFSET MICROSECONDS", "done NAME BYTES
// NATIVE_BYTES" or "failed NAME OFFSET WHY"; then calls `ended` with its name.
Recovery* NewRecovery(MetaServer& meta_server, const ReplicateChunkOp& op, const Script& script,
                      void (*ended)(const string& name));

}  // namespace host

#endif  // ECPIPE_TESTS_QFS_CHUNKSERVER_REPLICATOR_H_
