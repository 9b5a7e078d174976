// SPDX-License-Identifier: Apache-2.0
// A stand-in for a QFS chunkserver that recovers chunks through libecpipe_qfs.so, by the lines that
// integrations/qfs/README.md has one insert into QFS. It does what standard input says, a line a
// command, and prints what happens:
//
//   parameters LIBRARY CONFIG                  loads the library; "-": none
//   recover NAME OUTPUT LENGTH HOLD_AT CANCEL_AT
//           FILE CHUNK VERSION CHUNK_OFFSET FILE_SIZE STRIPER DATA PARITY CELL
//           [COEFFICIENT SIBLING_FILE]...      in one line; replicator.h says what they mean
//   go NAME, cancel NAME
//   exit                                       with everything that is still open
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "host.h"
#include "replicator.h"

namespace host {

NetManager::NetManager() : wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void NetManager::Wakeup() {
  const uint64_t one = 1;
  // It cannot fail: the counter does not overflow.
  if (write(wake_fd_, &one, sizeof one) < 0) abort();
}

void NetManager::CallTimers() {
  const std::vector<ITimeout*> timers(timers_.begin(), timers_.end());
  for (size_t i = 0; i < timers.size(); ++i) {
    if (timers_.count(timers[i]) > 0) timers[i]->Timeout();
  }
}

void NetManager::Run(void (*line)(const string& text)) {
  string input;
  while (true) {
    pollfd polled[] = {{wake_fd_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(polled, 2, -1) < 0 && errno != EINTR) abort();
    uint64_t wakes = 0;
    if (polled[0].revents != 0 && read(wake_fd_, &wakes, sizeof wakes) < 0) abort();
    CallTimers();
    if (polled[1].revents == 0) continue;
    char bytes[4096];
    const ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return;
    input.append(bytes, static_cast<size_t>(got));
    for (size_t end = 0; (end = input.find('\n')) != string::npos; input.erase(0, end + 1)) {
      line(input.substr(0, end));
    }
  }
}

namespace {

// For ever: the library's threads may use the loop while the process ends.
struct Chunkserver {
  NetManager net_manager;
  MetaServer meta_server;
  std::map<string, Recovery*> recoveries;
};

Chunkserver& Self() {
  static Chunkserver* const self = new Chunkserver;
  self->meta_server.net_manager = &self->net_manager;
  return *self;
}

void SetParameters(std::istream& words) {
  string library, config;
  words >> library >> config;
  Properties props;
  if (library != "-") props.values["chunkServer.extRecovery.library"] = library;
  props.values["chunkServer.extRecovery.config"] = config;
  Replicator::SetParameters(props);
}

void Forget(const string& name) { Self().recoveries.erase(name); }

void Recover(std::istream& words) {
  Script script;
  ReplicateChunkOp op;
  words >> script.name >> script.output >> script.length >> script.hold_at >> script.cancel_at;
  words >> op.fileId >> op.chunkId >> op.chunkVersion >> op.chunkOffset >> op.fileSize;
  words >> op.striperType >> op.numStripes >> op.numRecoveryStripes >> op.stripeSize;
  op.targetVersion = -1;
  if (!words) abort();
  for (Term term; words >> term.coefficient >> term.chunk_file;) script.siblings.push_back(term);
  Recovery* const recovery = NewRecovery(Self().meta_server, op, script, &Forget);
  if (!Self().recoveries.insert(std::make_pair(script.name, recovery)).second) abort();
  recovery->Start();
}

void Execute(const string& text) {
  std::istringstream words(text);
  string command, name;
  words >> command;
  if (command == "parameters") return SetParameters(words);
  if (command == "recover") return Recover(words);
  if (command == "exit") exit(0);
  words >> name;
  const std::map<string, Recovery*>::iterator found = Self().recoveries.find(name);
  if (found == Self().recoveries.end()) abort();  // also one that has ended
  if (command == "go") return found->second->Go();
  if (command != "cancel") abort();
  found->second->Cancel();
}

}  // namespace
}  // namespace host

int main() {
  host::Self().net_manager.Run(&host::Execute);
  return 0;
}
