// SPDX-License-Identifier: Apache-2.0
// The data plane over the simulated network: real frames, byte by byte, over connections that are
// slow, cut, damaged, or made before the other end expects them.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <string>

#include "net/transport.h"
#include "sim/connection.h"
#include "sim/network.h"

namespace ecpipe::sim {

// What DataServer is to a helper: matches dialled connections with offered edges, and keeps those
// of either kind that come first for a while.
class DataPort {
 public:
  explicit DataPort(Network* network) : network_(network) {}
  ~DataPort() { Close(); }

  absl::Status Offer(const Hello& hello, const std::shared_ptr<Connection>& connection);
  // The bytes of a hello that have come with a connection.
  void Dialled(std::span<const uint8_t, kHelloBytes> hello, const std::shared_ptr<Dial>& dial);
  // Nobody is handed a connection after this.
  void Close();
  // What waits for its other end.
  size_t size();

 private:
  struct Waiting {
    Hello hello;
    std::shared_ptr<Dial> dial;
  };
  static void Match(const std::shared_ptr<Connection>& connection,
                    const std::shared_ptr<Dial>& dial);
  void DropOld();

  Network* const network_;
  std::map<EdgeId, std::pair<Hello, std::shared_ptr<Connection>>> offers_;
  std::list<Waiting> dials_;                                    // oldest first
  const std::shared_ptr<int> self_ = std::make_shared<int>(0);  // events ask whether it is gone
};

// The transport of one process. `port` is null for a process that only receives.
class SimTransport : public Transport {
 public:
  SimTransport(Network* network, const Host* host, DataPort* port)
      : network_(network), host_(host), port_(port) {}

  absl::StatusOr<std::unique_ptr<SliceReceiver>> Connect(const HopInput& input,
                                                         const StreamShape& shape) override;
  absl::StatusOr<std::unique_ptr<SliceSender>> Offer(const HopOutput& output,
                                                     const StreamShape& shape,
                                                     std::shared_ptr<Wakeup> wakeup) override;
  // The process has crashed: its connections break.
  void Break();

 private:
  static void ArriveAt(Network* network, const std::string& from, const std::string& to,
                       const Hello& hello, const std::shared_ptr<Dial>& dial);

  Network* const network_;
  const Host* const host_;
  DataPort* const port_;
  std::list<std::weak_ptr<Connection>> offered_;
  std::list<std::weak_ptr<Dial>> dialled_;
};

// A host with a data port.
class DataHost : public Host {
 public:
  using Host::Host;
  virtual DataPort* data_port() = 0;
};

}  // namespace ecpipe::sim
