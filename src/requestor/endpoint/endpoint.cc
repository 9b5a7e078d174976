// SPDX-License-Identifier: Apache-2.0
#include "requestor/endpoint/endpoint.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/guarded.h"
#include "base/process/log.h"
#include "base/status.h"
#include "model/plan/repair_plan.h"
#include "net/endpoint_address.h"
#include "net/origin_shares.h"

namespace ecpipe {
namespace {

// With no descriptors left accept() fails at once, for as long as that lasts.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

ConfigTroubles Endpoint::Check(const Options& options, bool has_tls) {
  ConfigTroubles troubles;
  const absl::StatusOr<EndpointAddress> where = ParseEndpointAddress(options.address);
  troubles.Add("endpoint.address", where.status());
  if (!where.ok()) return troubles;
  troubles.Add("endpoint.address",
               CheckEndpointAddress(options.address, has_tls || options.insecure));
  troubles.Add(EndpointAccess::Check(options.access, *where));
  const bool open = where->tcp && IsLoopback(where->tcp->host) && options.access.cookie.empty();
  if (open && !options.insecure) {
    troubles.Add("endpoint.address",
                 absl::InvalidArgumentError(
                     options.address +
                     " is open to every user of this host; set [endpoint] cookie to a file for its "
                     "secret, use a Unix socket, or set insecure = true if all users may read all "
                     "blocks"));
  }
  return troubles;
}

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Start(const Options& options,
                                                          RepairSourceFactory factory) {
  const bool has_tls = options.tls != nullptr;
  ECPIPE_RETURN_IF_ERROR(Check(options, has_tls).First());
  const bool allowed = has_tls || options.insecure;
  ECPIPE_ASSIGN_OR_RETURN(EndpointSocket socket,
                          EndpointSocket::Listen(options.address, options.mode));
  // "localhost" may turn out to be any address.
  ECPIPE_RETURN_IF_ERROR(CheckEndpointAddress(socket.address(), allowed));
  ECPIPE_ASSIGN_OR_RETURN(EndpointAccess access,
                          EndpointAccess::Create(options.access, options.address));
  Wakeup wakeup;
  if (!wakeup.valid()) return ErrnoStatus(errno, "make an eventfd for " + options.address);
  Options used = options;
  if (socket.local()) used.tls = nullptr;
  return std::unique_ptr<Endpoint>(new Endpoint(used, std::move(socket), std::move(access),
                                                std::move(wakeup), std::move(factory)));
}

Endpoint::Endpoint(const Options& options, EndpointSocket socket, EndpointAccess access,
                   Wakeup wakeup, RepairSourceFactory factory)
    : options_(options),
      socket_(std::move(socket)),
      access_(std::move(access)),
      factory_(std::move(factory)),
      wakeup_(std::move(wakeup)),
      thread_([this] { Run(); }) {}

Endpoint::~Endpoint() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wakeup_.Signal();
  thread_.join();
}

EndpointCounts Endpoint::counts() {
  MutexLock lock(&mutex_);
  EndpointCounts counts = counts_;
  counts.connections = static_cast<uint32_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const Connection& connection) { return !connection.done; }));
  return counts;
}

bool Endpoint::stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

std::vector<EndpointSession*> Endpoint::Sessions() {
  MutexLock lock(&mutex_);
  std::vector<EndpointSession*> sessions;
  for (const Connection& connection : connections_) sessions.push_back(connection.session.get());
  return sessions;
}

void Endpoint::StopListening() {
  {
    MutexLock lock(&mutex_);
    listening_ = false;
  }
  wakeup_.Signal();
}

bool Endpoint::listening() {
  MutexLock lock(&mutex_);
  return listening_;
}

void Endpoint::Run() {
  while (Await()) {
    if (listening()) {
      AcceptSome();
    } else {
      socket_.Close();
    }
    JoinDone();
  }
  for (EndpointSession* session : Sessions()) {
    session->Stop(absl::UnavailableError("the endpoint is shutting down"));
  }
  std::list<Connection> left;
  {
    MutexLock lock(&mutex_);
    for (Connection& connection : connections_) {
      left.push_back({{}, nullptr, std::move(connection.thread)});
    }
  }
  for (Connection& connection : left) connection.thread.join();
}

bool Endpoint::Await() {
  std::vector<pollfd> polled = {{socket_.fd(), POLLIN, 0}, {wakeup_.fd(), POLLIN, 0}};
  std::vector<EndpointSession*> watched;
  std::optional<TimePoint> first;
  const std::vector<EndpointSession*> sessions = Sessions();
  for (EndpointSession* session : sessions) {
    if (const auto deadline = session->deadline())
      first = std::min(first.value_or(*deadline), *deadline);
    const int fd = session->watched_fd();
    if (fd < 0) continue;
    watched.push_back(session);
    polled.push_back({fd, POLLIN | POLLRDHUP, 0});
  }
  int timeout = -1;
  if (first) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::System().Now());
    timeout = static_cast<int>(std::max<int64_t>(0, rest.count()));
  }
  ::poll(polled.data(), polled.size(), timeout);
  wakeup_.Drain();
  for (size_t i = 0; i < watched.size(); ++i) {
    if (polled[i + 2].revents != 0) watched[i]->PeerHasGone();
  }
  const TimePoint now = Clock::System().Now();
  for (EndpointSession* session : sessions) session->Expire(now);
  return !stopping();
}

// Those that have been accepted must have their turn as well.
void Endpoint::AcceptSome() {
  constexpr int kAcceptsAtOnce = 64;
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd fd(::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      // Without memory for it, it is closed.
      (void)Guarded([&] {
        Open(std::move(fd));
        return absl::OkStatus();
      });
      continue;
    }
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
    if (exhausted) {
      pollfd polled{wakeup_.fd(), POLLIN, 0};
      ::poll(&polled, 1,
             static_cast<int>(
                 std::chrono::duration_cast<std::chrono::milliseconds>(kAcceptPause).count()));
    }
    return;
  }
}

void Endpoint::MakeRoom() {
  std::vector<Connection*> open;
  {
    MutexLock lock(&mutex_);
    for (Connection& connection : connections_) {
      if (!connection.gave_way) open.push_back(&connection);
    }
  }
  if (open.size() < options_.max_connections) return;
  OriginShares asking;
  for (size_t i = 0; i < open.size(); ++i) {
    if (!open[i]->peer.user && open[i]->session->asking()) asking.Add(i, open[i]->peer.origin);
  }
  const std::optional<uint64_t> surplus = asking.Surplus();
  if (!surplus) return;
  Connection* const gives_way = open[*surplus];
  const absl::Status why =
      absl::ResourceExhaustedError("the request had not come when others needed its room");
  {
    MutexLock lock(&mutex_);
    gives_way->gave_way = true;
  }
  NoteRefused(gives_way->peer, why);
  gives_way->session->Stop(why);
}

std::vector<EndpointPeer> Endpoint::OpenPeers() {
  MutexLock lock(&mutex_);
  std::vector<EndpointPeer> open;
  for (const Connection& connection : connections_) {
    if (!connection.gave_way) open.push_back(connection.peer);
  }
  return open;
}

absl::Status Endpoint::Admit(const EndpointPeer& peer) {
  ECPIPE_RETURN_IF_ERROR(access_.CheckPeer(peer));
  // Who is refused in any case makes nobody give way.
  if (!peer.user && !EndpointAccess::HasItsShare(peer, OpenPeers(), options_.max_connections)) {
    MakeRoom();
  }
  return access_.CheckRoom(peer, OpenPeers(), options_.max_connections);
}

// A line a second at most: who is refused tries again.
void Endpoint::NoteRefused(const EndpointPeer& peer, const absl::Status& why) {
  constexpr auto kInterval = std::chrono::seconds(1);
  {
    MutexLock lock(&mutex_);
    ++counts_.refused;
  }
  ++refused_since_;
  if (const TimePoint now = Clock::System().Now(); now >= next_note_) {
    next_note_ = now + kInterval;
    Log(LogLevel::kWarning, "endpoint.refused",
        {{"user", peer.text()},
         {"status", StatusText(why)},
         {"count", std::to_string(std::exchange(refused_since_, 0))}});
  }
}

// Says why, if the socket takes it; a client of TLS only sees the end.
void Endpoint::Refuse(const UniqueFd& fd, const EndpointPeer& peer, const absl::Status& why) {
  NoteRefused(peer, why);
  if (options_.tls != nullptr) return;
  const std::string text = EndpointErrorText(why);
  const std::span<const uint8_t> payload(reinterpret_cast<const uint8_t*>(text.data()),
                                         text.size());
  const EndpointFrameHeaderBytes header = EncodeEndpointHeader(EndpointFrame::kError, payload);
  std::vector<uint8_t> frame(header.begin(), header.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  [[maybe_unused]] const ssize_t sent =
      ::send(fd.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Endpoint::Open(UniqueFd fd) {
  JoinDone();
  EndpointPeer peer = PeerOf(fd.get());
  if (socket_.local()) peer.origin.clear();  // all clients have it
  if (absl::Status may = Admit(peer); !may.ok()) return Refuse(fd, peer, may);
  StreamSocket socket(std::move(fd));
  if (options_.tls != nullptr) {
    // Those who may have blocks repaired (rpc/access.cc).
    socket.UseTls(options_.tls->Accept(socket.fd(), {Role::kRequestor, Role::kOperator}));
  }
  auto session = std::make_unique<EndpointSession>(std::move(socket), options_.session, &access_,
                                                   &factory_, [this] { wakeup_.Signal(); });
  MutexLock lock(&mutex_);
  Connection& connection = connections_.emplace_back();
  connection.peer = std::move(peer);
  connection.session = std::move(session);
  absl::StatusOr<Thread> thread = Thread::Start([this, at = &connection] { Serve(at); });
  if (thread.ok()) {
    connection.thread = *std::move(thread);
  } else {
    ++counts_.refused;
    connections_.pop_back();
  }
}

void Endpoint::Serve(Connection* connection) {
  EndpointSession::Outcome outcome;
  // What a repair throws the session tells its client. Of all else the client sees the end of the
  // connection, as when the daemon has ended.
  outcome.status.Update(Guarded([&] {
    outcome = connection->session->Run();
    return absl::OkStatus();
  }));
  bool noted = false;
  {
    MutexLock lock(&mutex_);
    noted = connection->gave_way;
  }
  if ((outcome.repair || !outcome.status.ok()) && !noted) {
    Log(outcome.status.ok() ? LogLevel::kInfo : LogLevel::kWarning, "endpoint.end",
        {{"user", connection->peer.text()},
         {"client", outcome.client},
         {"repair", outcome.repair_id ? RepairIdText(*outcome.repair_id) : "none"},
         {"block", outcome.block},
         {"bytes", std::to_string(outcome.bytes)},
         {"status", StatusText(outcome.status)}});
  }
  {
    MutexLock lock(&mutex_);
    connection->done = true;
    counts_.bytes_sent += outcome.bytes;
    ++(!outcome.repair       ? counts_.bad_requests
       : outcome.status.ok() ? counts_.repairs_done
                             : counts_.repairs_failed);
  }
  wakeup_.Signal();
}

void Endpoint::JoinDone() {
  std::list<Connection> done;
  {
    MutexLock lock(&mutex_);
    for (auto at = connections_.begin(); at != connections_.end();) {
      const auto next = std::next(at);
      if (at->done) done.splice(done.end(), connections_, at);
      at = next;
    }
  }
  for (Connection& connection : done) connection.thread.join();
}

}  // namespace ecpipe
