// SPDX-License-Identifier: Apache-2.0
// The wires of the simulated cluster: who can reach whom, how fast, and what goes wrong. Control
// calls go over it here, the data plane in data_plane.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "sim/scheduler.h"

namespace ecpipe::sim {

// What can be called on a machine: a daemon, as long as its process lives.
class Host {
 public:
  Host(std::string node, std::shared_ptr<Process> process)
      : node_(std::move(node)), process_(std::move(process)) {}
  virtual ~Host() = default;

  const std::string& node() const { return node_; }
  const std::shared_ptr<Process>& process() const { return process_; }
  bool alive() const { return process_->alive; }

  // Whoever uses the host from a fibre that the host does not end itself.
  void Pin() { ++pins_; }
  void Unpin() { --pins_; }
  bool pinned() const { return pins_ > 0; }

 private:
  const std::string node_;
  const std::shared_ptr<Process> process_;  // shared with its fibres, which may end later
  int pins_ = 0;
};

struct NetworkOptions {
  Duration least_delay = std::chrono::microseconds(100);
  Duration most_delay = std::chrono::milliseconds(2);
  double bytes_per_second = 1e8;  // of each stream
  size_t window_bytes = 16384;    // under way on a stream
  // Probabilities: of a message of a control call, and of a piece of a stream.
  double lose_message = 0;
  double duplicate_message = 0;
  double corrupt_piece = 0;
  double cut_stream = 0;
};

class Network {
 public:
  Network(Scheduler* scheduler, const NetworkOptions& options)
      : scheduler_(scheduler), options_(options) {}

  Scheduler* scheduler() { return scheduler_; }
  NetworkOptions& options() { return options_; }
  Duration Delay();
  // Of a stream's piece: the wire's delay and the time that its bytes take.
  Duration DelayOf(const std::string& from, const std::string& to, size_t bytes);

  bool Reachable(const std::string& from, const std::string& to) const;
  // Whether nothing below is done to the node.
  bool Unharmed(const std::string& node) const;
  void Isolate(const std::string& node) { isolated_.insert(node); }
  void Rejoin(const std::string& node) { isolated_.erase(node); }
  // One way only.
  void Cut(const std::string& from, const std::string& to) { cut_.insert({from, to}); }
  void Mend(const std::string& from, const std::string& to) { cut_.erase({from, to}); }
  // Streams from this node are so many times slower.
  void Slow(const std::string& node, double times) { slow_[node] = times; }
  // Ends all the above; the network is good and fast from now on.
  void Heal();

  // The host registered last under a node's name; null when none lives.
  Host* Find(const std::string& node) const;
  void Add(Host* host) { hosts_[host->node()] = host; }
  void Remove(Host* host);

  // A call from the current fibre: `handle` runs on the callee's machine, on a fibre of its own,
  // and may block. DEADLINE_EXCEEDED after `timeout`; UNAVAILABLE when nobody listens. In both
  // cases `handle` may have run, and it may run twice.
  template <typename Response>
  absl::StatusOr<Response> Call(const Host& from, const std::string& to, Duration timeout,
                                std::function<absl::StatusOr<Response>(Host*)> handle) {
    const auto erased = [handle](Host* host) -> std::shared_ptr<void> {
      return std::make_shared<absl::StatusOr<Response>>(handle(host));
    };
    absl::StatusOr<std::shared_ptr<void>> answer = Exchange(from, to, timeout, erased);
    if (!answer.ok()) return answer.status();
    return std::move(*static_cast<absl::StatusOr<Response>*>(answer->get()));
  }

 private:
  using Handle = std::function<std::shared_ptr<void>(Host*)>;
  struct Pending {
    uint64_t fibre = 0;
    std::optional<absl::StatusOr<std::shared_ptr<void>>> answer;
  };
  absl::StatusOr<std::shared_ptr<void>> Exchange(const Host& from, const std::string& to,
                                                 Duration timeout, const Handle& handle);
  void Deliver(const std::string& from, const std::string& to, const Handle& handle,
               const std::shared_ptr<Pending>& pending);
  void Answer(const std::shared_ptr<Pending>& pending, absl::StatusOr<std::shared_ptr<void>> answer,
              const std::string& from, const std::string& to);

  Scheduler* const scheduler_;
  NetworkOptions options_;
  std::set<std::string> isolated_;
  std::set<std::pair<std::string, std::string>> cut_;
  std::map<std::string, double> slow_;
  std::map<std::string, Host*> hosts_;
};

}  // namespace ecpipe::sim
