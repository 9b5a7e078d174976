// SPDX-License-Identifier: Apache-2.0
// The requestor endpoint: processes of a storage system on this host ask it for repairs, by a small
// protocol of its own (docs/wire.md) over a Unix socket or TCP.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "base/process/config_troubles.h"
#include "base/thread.h"
#include "base/wakeup.h"
#include "net/tls/tls.h"
#include "requestor/endpoint/endpoint_session.h"
#include "requestor/endpoint/endpoint_socket.h"
#include "requestor/endpoint/endpoint_source.h"

namespace ecpipe {

// Counted since the start.
struct EndpointCounts {
  uint32_t connections = 0;   // connections that are open now
  uint64_t refused = 0;       // connections beyond the limit, or of who may not ask
  uint64_t bad_requests = 0;  // connections without a valid request
  uint64_t repairs_done = 0;
  uint64_t repairs_failed = 0;  // repairs that clients gave up included
  uint64_t bytes_sent = 0;      // bytes of blocks
};

// One thread accepts connections and watches clients while they wait; each connection has a thread
// of its own. Thread-safe.
class Endpoint {
 public:
  struct Options {
    std::string address;   // as in net/endpoint_address.h
    uint32_t mode = 0660;  // of the file of a Unix socket
    uint32_t max_connections = 64;
    EndpointAccess::Options access = {};
    bool insecure = false;            // plain TCP off loopback, or without a cookie
    std::shared_ptr<TlsContext> tls;  // for addresses off loopback
    EndpointSession::Options session;
  };

  // What Start() would refuse in a configuration before it opens anything. Whether it has TLS the
  // caller says, and not options.tls: its files may be of no use.
  static ConfigTroubles Check(const Options& options, bool has_tls);
  // The errors are those of CheckEndpointAddress, EndpointSocket::Listen and EndpointAccess.
  // RESOURCE_EXHAUSTED: the process has no descriptor left.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Start(const Options& options,
                                                         RepairSourceFactory factory);
  // Ends all connections with UNAVAILABLE and waits for their threads, which can take as long as a
  // call to the coordinator.
  ~Endpoint();

  const std::string& address() const { return socket_.address(); }
  EndpointCounts counts();

  // Gives up the address soon, so that another process may listen on it. Connections go on.
  void StopListening();

 private:
  struct Connection {
    EndpointPeer peer;
    std::unique_ptr<EndpointSession> session;
    Thread thread;
    bool done = false;
    bool gave_way = false;  // its thread soon ends
  };

  Endpoint(const Options& options, EndpointSocket socket, EndpointAccess access, Wakeup wakeup,
           RepairSourceFactory factory);
  void Run();
  // Waits until something happens; returns false when it is time to stop.
  bool Await();
  void AcceptSome();
  void Open(UniqueFd fd);
  std::vector<EndpointPeer> OpenPeers();  // of those that have not given way
  absl::Status Admit(const EndpointPeer& peer);
  // Where there is no room, who has come by TCP and not asked yet gives way: of the address with
  // the most of these, the oldest. They may be strangers, whom the cookie or TLS will not let in.
  void MakeRoom();
  void NoteRefused(const EndpointPeer& peer, const absl::Status& why);
  void Refuse(const UniqueFd& fd, const EndpointPeer& peer, const absl::Status& why);
  void Serve(Connection* connection);
  void JoinDone();
  std::vector<EndpointSession*> Sessions();
  bool stopping();
  bool listening();

  const Options options_;
  EndpointSocket socket_;  // its address is fixed; the rest is the thread's
  const EndpointAccess access_;
  const RepairSourceFactory factory_;
  Wakeup wakeup_;
  // Connections are added and removed by the accepting thread only; a list keeps their addresses.
  Mutex mutex_;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  EndpointCounts counts_ ABSL_GUARDED_BY(mutex_);
  TimePoint next_note_{};  // of who is refused; the accepting thread's, as the next
  uint64_t refused_since_ = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool listening_ ABSL_GUARDED_BY(mutex_) = true;
  Thread thread_;
};

}  // namespace ecpipe
