// SPDX-License-Identifier: Apache-2.0
// What a daemon tells the service manager that has started it, by the protocol of sd_notify(3):
// datagrams of NAME=VALUE lines to the socket that $NOTIFY_SOCKET names.
#pragma once

#include <string>

#include "base/clock.h"

namespace ecpipe {

// Whether what is written to `file` goes to the journal, by $JOURNAL_STREAM.
bool IsJournal(int file);

// Thread-safe. Where no service manager listens, nothing is sent. A message that cannot be sent
// within a second is lost and logged: a daemon works whether somebody watches it or not.
class ServiceManager {
 public:
  // The one of this process, as its environment had it at the first call.
  static const ServiceManager& OfThisProcess();
  static ServiceManager FromEnvironment();

  // The daemon does what it is for. `status` is for people: `systemctl status` shows it.
  void Ready(const std::string& status) const;
  // A start or a stop is under way and not at its end: the manager ends the daemon only if it hears
  // nothing more for `extension`. Call it again before that.
  void StillBusy(Duration extension, const std::string& status) const;
  // The loop that does the work has turned once more. Nothing is sent unless the manager watches.
  void Alive() const;
  // The daemon is about to end.
  void Stopping() const;

 private:
  void Send(const std::string& message) const;

  std::string socket_;    // a path, or '@' and a name in the abstract namespace; empty: nobody
  bool watched_ = false;  // whether the manager waits for Alive()
};

}  // namespace ecpipe
