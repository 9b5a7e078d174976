// SPDX-License-Identifier: Apache-2.0
#include "rpc/caller_limits.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/process/log.h"
#include "net/tcp_socket.h"
#include "rpc/access.h"

namespace ecpipe {
namespace {

constexpr char kReflection[] = "/grpc.reflection.";
constexpr char kBackup[] = "/ecpipe.v1.CoordinatorService/Backup";
constexpr char kHealth[] = "/grpc.health.v1.Health/";
constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

uint64_t MaxDescriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

// As gRPC calls a peer: "ipv4:1.2.3.4:5" or "ipv6:%5B::1%5D:5".
std::string PeerText(const sockaddr_storage& from) {
  char text[INET6_ADDRSTRLEN] = "";
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return std::string("ipv4:") + text + ":" + std::to_string(ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
  const std::string port = std::to_string(ntohs(v6.sin6_port));
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    ::inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text, sizeof text);
    return std::string("ipv4:") + text + ":" + port;
  }
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return std::string("ipv6:%5B") + text + "%5D:" + port;
}

// Without the zone of a link-local address ("%25eth0" there), which accept() does not tell as text.
std::string WithoutZone(const std::string& peer) {
  const size_t zone = peer.find("%25");
  const size_t end = peer.find("%5D");
  if (zone == std::string::npos || end == std::string::npos) return peer;
  return peer.substr(0, zone) + peer.substr(end);
}

bool IsStream(const std::string& method) {
  return method.starts_with(kReflection) || method.starts_with(kHealth) || method == kBackup;
}

}  // namespace

CallerLimits::Room CallerLimits::RoomFor(const Options& options, uint64_t max_descriptors) {
  // Each connection takes two. Half of all for those that call, an eighth for strangers.
  return {std::min<size_t>(options.max_calling, std::max<uint64_t>(8, max_descriptors / 4)),
          std::min<size_t>(options.max_waiting, std::max<uint64_t>(8, max_descriptors / 16))};
}

uint64_t CallerLimits::Add(UniqueFd watch, const sockaddr_storage& from) {
  const size_t room = RoomFor(options_, MaxDescriptors()).waiting;
  Connection connection{std::move(watch), PeerText(from), OriginText(from),
                        Clock::System().Now() + options_.first_call};
  Note note;
  uint64_t id = 0;
  {
    MutexLock lock(&mutex_);
    while (waiting_.size() >= room) {
      const uint64_t surplus = *waiting_.Surplus();
      NoteEnded("rpc.too_many_connections", connections_.at(surplus).origin, &note);
      ShutDown(surplus);
    }
    id = next_id_++;
    waiting_.Add(id, connection.origin);
    by_peer_[connection.peer] = id;
    connections_.emplace(id, std::move(connection));
  }
  Say(note);
  return id;
}

void CallerLimits::Forget(uint64_t id) {
  MutexLock lock(&mutex_);
  Drop(id);
}

void CallerLimits::ShutDown(uint64_t id) {
  ::shutdown(connections_.at(id).watch.get(), SHUT_RDWR);
  Drop(id);
}

void CallerLimits::Drop(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const auto peer = by_peer_.find(found->second.peer);
  if (peer != by_peer_.end() && peer->second == id) by_peer_.erase(peer);
  waiting_.Remove(id);
  calling_.Remove(id);
  connections_.erase(found);
}

void CallerLimits::NoteCall(const std::string& peer) {
  Note note;
  {
    MutexLock lock(&mutex_);
    const auto found = by_peer_.find(WithoutZone(peer));
    if (found == by_peer_.end() || !waiting_.Has(found->second)) return;
    const uint64_t id = found->second;
    const size_t room = RoomFor(options_, MaxDescriptors()).calling;
    while (calling_.size() >= room) {
      const uint64_t surplus = *calling_.Surplus();
      NoteEnded("rpc.too_many_connections", connections_.at(surplus).origin, &note);
      ShutDown(surplus);
    }
    waiting_.Remove(id);
    calling_.Add(id, connections_.at(id).origin);
  }
  Say(note);
}

bool CallerLimits::EndLate(TimePoint now) {
  Note note;
  std::vector<std::pair<uint64_t, grpc::ServerContextBase*>> late;
  {
    MutexLock lock(&mutex_);
    for (std::optional<uint64_t> oldest = waiting_.Oldest();
         oldest && connections_.at(*oldest).deadline <= now; oldest = waiting_.Oldest()) {
      NoteEnded("rpc.no_call", connections_.at(*oldest).origin, &note);
      ShutDown(*oldest);
    }
    for (auto& [id, stream] : streams_) {
      if (stream.deadline > now) continue;
      stream.deadline = TimePoint::max();  // once
      stream.cancelling = true;
      late.emplace_back(id, stream.context);
    }
  }
  Say(note);
  for (const auto& [id, context] : late) context->TryCancel();
  MutexLock lock(&mutex_);
  for (const auto& [id, context] : late) streams_.at(id).cancelling = false;
  if (!late.empty()) cancelled_.NotifyAll();
  return waiting_.size() > 0 || !streams_.empty();
}

absl::Status CallerLimits::Admit(const std::string& method, const std::string& caller) {
  // From a call's first words to its thread it takes far less.
  constexpr Duration kNeverBegins = std::chrono::seconds(10);
  if (method != kWatch && (IsOfDaemons(method) || IsStream(method))) return absl::OkStatus();
  const TimePoint now = Clock::System().Now();
  std::string many = std::to_string(options_.max_calls_of_others) +
                     " calls are under way here, and the other threads are for the cluster's own; "
                     "try again later";
  Note note;
  {
    MutexLock lock(&mutex_);
    while (!admitted_.empty() && admitted_.front() <= now - kNeverBegins) admitted_.pop_front();
    if (method == kWatch) {
      if (streams_by_kind_[StreamKind::kWatch] < options_.max_watches) return absl::OkStatus();
      many = std::to_string(options_.max_watches) +
             " streams watch the health of this process already; ask it now and then (Check)";
    } else if (calls_of_others_ + admitted_.size() < options_.max_calls_of_others) {
      admitted_.push_back(now);
      return absl::OkStatus();
    }
    NoteEnded("rpc.too_many_calls", caller, &note);
  }
  Say(note);
  return absl::ResourceExhaustedError(many);
}

void CallerLimits::BeginCallOfOthers() {
  MutexLock lock(&mutex_);
  if (!admitted_.empty()) admitted_.pop_front();
  ++calls_of_others_;
}

void CallerLimits::EndCallOfOthers() {
  MutexLock lock(&mutex_);
  --calls_of_others_;
}

Duration CallerLimits::DeadlineOf(StreamKind kind) const {
  switch (kind) {
    case StreamKind::kReflection:
      return options_.reflection;
    case StreamKind::kBackup:
      return options_.backup;
    case StreamKind::kWatch:
      return options_.watch;
    case StreamKind::kReport:
      break;
  }
  return options_.stream;
}

bool CallerLimits::Full(StreamKind kind, const std::string& peer) {
  if (streams_by_peer_.Of(peer) >= options_.max_streams_of_a_connection) return true;
  const size_t watches = streams_by_kind_[StreamKind::kWatch];
  if (kind == StreamKind::kWatch) return watches >= options_.max_watches;
  if (streams_.size() - watches >= options_.max_streams) return true;
  return kind == StreamKind::kReflection && streams_by_kind_[kind] >= options_.max_reflections;
}

uint64_t CallerLimits::BeginStream(grpc::ServerContextBase* context, StreamKind kind) {
  const std::string peer = context->peer();
  Note note;
  {
    MutexLock lock(&mutex_);
    if (!Full(kind, peer)) {
      const uint64_t id = next_id_++;
      streams_[id] = {context, Clock::System().Now() + DeadlineOf(kind), kind};
      streams_by_peer_.Add(id, peer);
      ++streams_by_kind_[kind];
      return id;
    }
    NoteEnded("rpc.too_many_streams", peer, &note);
  }
  Say(note);
  return 0;
}

void CallerLimits::EndStream(uint64_t id) {
  MutexLock lock(&mutex_);
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  while (found->second.cancelling) cancelled_.Wait(lock);
  --streams_by_kind_[found->second.kind];
  streams_by_peer_.Remove(id);
  streams_.erase(found);
}

// A line a second at most: a flood must not fill the log.
void CallerLimits::NoteEnded(const char* event, const std::string& origin, Note* note) {
  constexpr auto kInterval = std::chrono::seconds(1);
  ++ended_;
  const TimePoint now = Clock::System().Now();
  if (now < next_note_) return;
  next_note_ = now + kInterval;
  *note = {event, origin, std::exchange(ended_, 0)};
}

void CallerLimits::Say(const Note& note) {
  if (note.event == nullptr) return;
  Log(LogLevel::kWarning, note.event,
      {{"from", note.origin}, {"count", std::to_string(note.count)}});
}

// One call. It is told of the call's beginning and end on whatever thread that happens.
class CallerLimits::Interceptor : public grpc::experimental::Interceptor {
 public:
  Interceptor(std::shared_ptr<CallerLimits> limits, grpc::experimental::ServerRpcInfo* call)
      : limits_(std::move(limits)), call_(call) {}
  ~Interceptor() override { End(); }

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    using Point = grpc::experimental::InterceptionHookPoints;
    if (methods->QueryInterceptionHookPoint(Point::POST_RECV_INITIAL_METADATA)) Begin();
    // The last moment at which the context may be used.
    if (methods->QueryInterceptionHookPoint(Point::PRE_SEND_STATUS)) End();
    methods->Proceed();
  }

 private:
  void Begin() {
    limits_->NoteCall(call_->server_context()->peer());
    const std::string method = call_->method();
    if (method.starts_with(kHealth) && method != kWatch) return;  // it takes no thread
    if (call_->type() == grpc::experimental::ServerRpcInfo::Type::UNARY) {
      of_others_ = !IsOfDaemons(method);
      if (of_others_) limits_->BeginCallOfOthers();
      return;
    }
    const StreamKind kind = method.starts_with(kReflection) ? StreamKind::kReflection
                            : method == kBackup             ? StreamKind::kBackup
                            : method == kWatch              ? StreamKind::kWatch
                                                            : StreamKind::kReport;
    stream_ = limits_->BeginStream(call_->server_context(), kind);
    if (stream_ == 0) {
      call_->server_context()->TryCancel();
    } else {
      limits_->on_stream_();
    }
  }
  void End() {
    if (stream_ != 0) limits_->EndStream(std::exchange(stream_, 0));
    if (std::exchange(of_others_, false)) limits_->EndCallOfOthers();
  }

  const std::shared_ptr<CallerLimits> limits_;  // shared by the calls, the acceptor and the server
  grpc::experimental::ServerRpcInfo* const call_;
  uint64_t stream_ = 0;
  bool of_others_ = false;  // a call that returns
};

class CallerLimits::Factory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(std::shared_ptr<CallerLimits> limits) : limits_(std::move(limits)) {}
  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* call) override {
    return new Interceptor(limits_, call);  // gRPC owns it
  }

 private:
  const std::shared_ptr<CallerLimits> limits_;  // shared with the server
};

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallerLimits::Watch(
    std::shared_ptr<CallerLimits> limits) {
  return std::make_unique<Factory>(std::move(limits));
}

}  // namespace ecpipe
