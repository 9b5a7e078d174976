// SPDX-License-Identifier: Apache-2.0
#include "sim/network.h"

#include <algorithm>

namespace ecpipe::sim {

Duration Network::Delay() {
  const auto spread = static_cast<uint64_t>((options_.most_delay - options_.least_delay).count());
  return options_.least_delay + Duration(scheduler_->random().Below(spread + 1));
}

Duration Network::DelayOf(const std::string& from, const std::string& /*to*/, size_t bytes) {
  const auto slow = slow_.find(from);
  const double times = slow == slow_.end() ? 1 : slow->second;
  return Delay() + FromSeconds(times * static_cast<double>(bytes) / options_.bytes_per_second);
}

bool Network::Reachable(const std::string& from, const std::string& to) const {
  if (from == to) return true;
  return !isolated_.contains(from) && !isolated_.contains(to) && !cut_.contains({from, to});
}

bool Network::Unharmed(const std::string& node) const {
  return !isolated_.contains(node) && !slow_.contains(node) &&
         std::none_of(cut_.begin(), cut_.end(),
                      [&](const auto& link) { return link.first == node || link.second == node; });
}

void Network::Heal() {
  isolated_.clear();
  cut_.clear();
  slow_.clear();
  options_ = {};
}

Host* Network::Find(const std::string& node) const {
  const auto found = hosts_.find(node);
  return found != hosts_.end() && found->second->alive() ? found->second : nullptr;
}

void Network::Remove(Host* host) {
  const auto found = hosts_.find(host->node());
  if (found != hosts_.end() && found->second == host) hosts_.erase(found);
}

absl::StatusOr<std::shared_ptr<void>> Network::Exchange(const Host& from, const std::string& to,
                                                        Duration timeout, const Handle& handle) {
  if (!from.alive()) return absl::UnavailableError("this process has crashed");
  auto pending = std::make_shared<Pending>();
  pending->fibre = scheduler_->current_fibre();
  const TimePoint deadline = scheduler_->Now() + timeout;
  const int copies = scheduler_->random().Chance(options_.duplicate_message) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (scheduler_->random().Chance(options_.lose_message)) continue;
    scheduler_->After(Delay(), [this, from_node = from.node(), to, handle, pending] {
      Deliver(from_node, to, handle, pending);
    });
  }
  while (!pending->answer && scheduler_->Now() < deadline) scheduler_->Block(deadline);
  if (!pending->answer) return absl::DeadlineExceededError(to + " did not answer in time");
  return *std::move(pending->answer);
}

void Network::Deliver(const std::string& from, const std::string& to, const Handle& handle,
                      const std::shared_ptr<Pending>& pending) {
  if (!Reachable(from, to)) return;
  Host* const host = Find(to);
  if (host == nullptr) {
    return Answer(pending, absl::UnavailableError(to + " refused the connection"), to, from);
  }
  host->Pin();
  scheduler_->Spawn(host->process(), [this, from, to, handle, pending, host] {
    std::shared_ptr<void> response = handle(host);
    const bool alive = host->alive();
    host->Unpin();
    if (alive) return Answer(pending, std::move(response), to, from);
    Answer(pending, absl::UnavailableError(to + " closed the connection"), to, from);
  });
}

void Network::Answer(const std::shared_ptr<Pending>& pending,
                     absl::StatusOr<std::shared_ptr<void>> answer, const std::string& from,
                     const std::string& to) {
  if (scheduler_->random().Chance(options_.lose_message)) return;
  scheduler_->After(Delay(), [this, pending, answer = std::move(answer), from, to] {
    if (pending->answer || !Reachable(from, to)) return;
    pending->answer = answer;
    scheduler_->Wake(pending->fibre);
  });
}

}  // namespace ecpipe::sim
