// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "coordinator/sources/qfs/metaserver_wire.h"
#include "net/stream_socket.h"

namespace ecpipe {

// A connection to a metaserver's client port, for a few questions in a row. Used by one thread.
// There is no authentication: a metaserver that wants one closes the connection or refuses.
class MetaServerClient {
 public:
  // UNAVAILABLE: nobody answers there. DEADLINE_EXCEEDED: neither the name server nor any address
  // of the host in time.
  static absl::StatusOr<MetaServerClient> Connect(const std::string& address, TimePoint deadline);

  // One question and its answer. UNAVAILABLE: the connection was lost, so the question can be asked
  // anew over another one. The errors of MetaAnswerParser and StatusOfAnswer. After an error that
  // is not of StatusOfAnswer the connection must not be used again.
  absl::StatusOr<MetaAnswer> Ask(const std::string& name, const MetaFields& fields,
                                 const std::string& what);

 private:
  MetaServerClient(std::string address, StreamSocket socket, TimePoint deadline)
      : address_(std::move(address)), socket_(std::move(socket)), deadline_(deadline) {}

  absl::Status Await(short events);
  absl::Status Send(const std::string& text);

  std::string address_;
  StreamSocket socket_;
  TimePoint deadline_;
  uint64_t sequence_ = 0;
};

}  // namespace ecpipe
