// SPDX-License-Identifier: Apache-2.0
#include "sim/data_plane.h"

#include <array>

#include "fakes/framed_stream.h"

namespace ecpipe::sim {
namespace {

// As DataServer::Options has it.
constexpr Duration kHandshakeTimeout = std::chrono::seconds(5);

// "n3:2" is the data port of node n3.
std::string NodeOf(const std::string& address) { return address.substr(0, address.find(':')); }

}  // namespace

absl::Status DataPort::Offer(const Hello& hello, const std::shared_ptr<Connection>& connection) {
  DropOld();
  if (const auto found = offers_.find(hello.edge); found != offers_.end()) {
    if (!found->second.second->sender_closed()) {
      return absl::AlreadyExistsError("this end of the edge is in use");
    }
    offers_.erase(found);
  }
  for (auto waiting = dials_.begin(); waiting != dials_.end(); ++waiting) {
    if (!(waiting->hello == hello)) continue;
    const std::shared_ptr<Dial> dial = waiting->dial;
    dials_.erase(waiting);
    // In its own time, so that the caller has its sender before a receiver is there.
    network_->scheduler()->After(Duration(0), [connection, dial] {
      if (!connection->sender_closed()) Match(connection, dial);
    });
    return absl::OkStatus();
  }
  offers_[hello.edge] = {hello, connection};
  return absl::OkStatus();
}

void DataPort::Dialled(std::span<const uint8_t, kHelloBytes> bytes,
                       const std::shared_ptr<Dial>& dial) {
  const absl::StatusOr<Hello> hello = DecodeHello(bytes);
  if (!hello.ok()) return dial->Refuse("the sender closed the stream");
  DropOld();
  const auto found = offers_.find(hello->edge);
  if (found != offers_.end() && SameToken(found->second.first.token, hello->token)) {
    const std::shared_ptr<Connection> connection = found->second.second;
    offers_.erase(found);
    return Match(connection, dial);
  }
  dials_.push_back({*hello, dial});
  network_->scheduler()->After(kHandshakeTimeout, [this, self = std::weak_ptr<int>(self_),
                                                   weak = std::weak_ptr<Dial>(dial)] {
    const std::shared_ptr<Dial> late = weak.lock();
    if (late != nullptr && !self.expired()) {
      const size_t dropped =
          dials_.remove_if([&](const Waiting& waiting) { return waiting.dial == late; });
      if (dropped > 0) late->Refuse("the sender closed the stream");
    }
  });
}

void DataPort::Match(const std::shared_ptr<Connection>& connection,
                     const std::shared_ptr<Dial>& dial) {
  if (dial->closed()) return;
  dial->Match(connection);
  connection->Attach(dial->node(), dial->fd(ByteStream::kReceiver));
}

// An offer whose sender has given up stays, with what it said last, until it would have been
// dialled.
void DataPort::DropOld() {
  std::erase_if(offers_, [&](const auto& offer) {
    const std::shared_ptr<Connection>& connection = offer.second.second;
    return connection->sender_closed() &&
           network_->scheduler()->Now() - connection->closed_at() > kHandshakeTimeout;
  });
  dials_.remove_if([](const Waiting& waiting) { return waiting.dial->closed(); });
}

size_t DataPort::size() {
  DropOld();
  return offers_.size() + dials_.size();
}

void DataPort::Close() {
  offers_.clear();
  for (const Waiting& waiting : dials_) waiting.dial->Refuse("connection reset by peer");
  dials_.clear();
}

absl::StatusOr<std::unique_ptr<SliceReceiver>> SimTransport::Connect(const HopInput& input,
                                                                     const StreamShape&) {
  if (!host_->alive()) return absl::UnavailableError("this process has crashed");
  auto dial = std::make_shared<Dial>(network_, host_->node());
  dialled_.push_back(dial);
  const std::string to = NodeOf(input.address);
  network_->scheduler()->After(network_->Delay(), [network = network_, from = host_->node(), to,
                                                   hello = Hello{input.edge, input.token},
                                                   weak = std::weak_ptr<Dial>(dial)] {
    if (const std::shared_ptr<Dial> dialling = weak.lock()) {
      ArriveAt(network, from, to, hello, dialling);
    }
  });
  return MakeFramedReceiver(input, std::move(dial));
}

void SimTransport::ArriveAt(Network* network, const std::string& from, const std::string& to,
                            const Hello& hello, const std::shared_ptr<Dial>& dial) {
  // Out of reach: the first packet is sent again and again, and the part's stall timeout decides.
  if (!network->Reachable(from, to) || !network->Reachable(to, from)) {
    network->scheduler()->After(std::chrono::milliseconds(200),
                                [network, from, to, hello, weak = std::weak_ptr<Dial>(dial)] {
                                  const std::shared_ptr<Dial> dialling = weak.lock();
                                  if (dialling == nullptr || dialling->closed()) return;
                                  ArriveAt(network, from, to, hello, dialling);
                                });
    return;
  }
  auto* const host = dynamic_cast<DataHost*>(network->Find(to));
  if (host == nullptr) return dial->Refuse("connection refused");
  std::array<uint8_t, kHelloBytes> bytes{};
  EncodeHello(hello, bytes);
  Random& random = network->scheduler()->random();
  if (random.Chance(network->options().corrupt_piece)) {
    bytes[random.Below(bytes.size())] ^= static_cast<uint8_t>(1 << random.Below(8));
  }
  host->data_port()->Dialled(bytes, dial);
}

absl::StatusOr<std::unique_ptr<SliceSender>> SimTransport::Offer(const HopOutput& output,
                                                                 const StreamShape&,
                                                                 std::shared_ptr<Wakeup> wakeup) {
  if (!host_->alive()) return absl::UnavailableError("this process has crashed");
  if (port_ == nullptr) {
    return absl::FailedPreconditionError("this process has no data port to send from");
  }
  auto connection = std::make_shared<Connection>(network_, host_->node(), std::move(wakeup));
  const absl::Status offered = port_->Offer(Hello{output.edge, output.token}, connection);
  if (!offered.ok()) return offered;
  offered_.push_back(connection);
  return MakeFramedSender(output, std::move(connection));
}

void SimTransport::Break() {
  for (const std::weak_ptr<Connection>& weak : offered_) {
    if (const auto connection = weak.lock()) connection->Break(ByteStream::kSender);
  }
  for (const std::weak_ptr<Dial>& weak : dialled_) {
    if (const auto dial = weak.lock()) dial->Break();
  }
}

}  // namespace ecpipe::sim
