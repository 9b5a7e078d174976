// SPDX-License-Identifier: Apache-2.0
#include "net/redis/redis_connection.h"

#include <dlfcn.h>
#include <hiredis/hiredis.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/secret_file.h"
#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {

namespace {

// hiredis, loaded when a stream first goes over redis: who links the requestor library and never
// does that need not have it. It is the version whose headers this file was compiled with.
struct Hiredis {
  decltype(&redisConnectFd) connect = nullptr;
  decltype(&redisFree) free = nullptr;
  decltype(&redisFormatCommandArgv) format = nullptr;
  decltype(&redisFreeCommand) free_command = nullptr;
  decltype(&redisGetReplyFromReader) next_reply = nullptr;
  decltype(&redisBufferRead) read = nullptr;
  decltype(&freeReplyObject) free_reply = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

absl::StatusOr<Hiredis> LoadHiredis() {
  Hiredis hiredis;
  void* const library = dlopen(ECPIPE_HIREDIS, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr && Find(library, "redisConnectFd", &hiredis.connect) &&
      Find(library, "redisFree", &hiredis.free) &&
      Find(library, "redisFormatCommandArgv", &hiredis.format) &&
      Find(library, "redisFreeCommand", &hiredis.free_command) &&
      Find(library, "redisGetReplyFromReader", &hiredis.next_reply) &&
      Find(library, "redisBufferRead", &hiredis.read) &&
      Find(library, "freeReplyObject", &hiredis.free_reply)) {
    return hiredis;
  }
  const char* const why = dlerror();
  return absl::FailedPreconditionError(
      "transport redis needs the library " ECPIPE_HIREDIS ", which cannot be loaded: " +
      std::string(why == nullptr ? "a function is missing" : why) +
      "; install it and restart this program, or take transport tcp");
}

// Loaded once, and never unloaded.
const absl::StatusOr<Hiredis>& TryHiredis() {
  static const absl::StatusOr<Hiredis> hiredis = LoadHiredis();
  return hiredis;
}

// For who has a connection.
const Hiredis& Lib() { return *TryHiredis(); }

}  // namespace

absl::Status RedisConnection::CheckLibrary() { return TryHiredis().status(); }

void RedisAnswer::Free::operator()(redisReply* reply) const { Lib().free_reply(reply); }

absl::StatusOr<std::string_view> RedisAnswer::Popped() const {
  if (reply_->type != REDIS_REPLY_ARRAY || reply_->elements != 2 ||
      reply_->element[1]->type != REDIS_REPLY_STRING) {
    return absl::DataLossError("redis: the reply to BLPOP is not a key and a value");
  }
  return std::string_view(reply_->element[1]->str, reply_->element[1]->len);
}

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(
    const std::string& address, const std::string& password_file) {
  std::string password;
  if (!password_file.empty()) {
    ECPIPE_ASSIGN_OR_RETURN(password, ReadSecret(password_file));
  }
  ECPIPE_ASSIGN_OR_RETURN(const HostPort host_port, ParseHostPort(address));
  ECPIPE_RETURN_IF_ERROR(CheckLibrary());
  absl::StatusOr<Dialler> dialler = Dialler::Begin(host_port);
  if (!dialler.ok()) return AnnotatePeer(dialler.status(), "redis at " + address);
  std::unique_ptr<RedisConnection> redis(
      new RedisConnection(*std::move(dialler), address, password_file));
  if (!password.empty()) ECPIPE_RETURN_IF_ERROR(redis->Queue({"AUTH", password}));
  return redis;
}

RedisConnection::RedisConnection(Dialler dialler, const std::string& address,
                                 const std::string& password_file)
    : dialler_(std::move(dialler)),
      address_(address),
      password_file_(password_file),
      auth_due_(!password_file.empty()) {}

RedisConnection::~RedisConnection() {
  if (context_ != nullptr) Lib().free(context_);
}

absl::Status RedisConnection::Append(std::initializer_list<std::string_view> words) {
  ECPIPE_RETURN_IF_ERROR(Queue(words));
  return Flush();
}

absl::Status RedisConnection::Push(const std::string& key, const std::string& value,
                                   const std::string& expiry_ms) {
  constexpr char kScript[] =
      "redis.call('RPUSH', KEYS[1], ARGV[1]) return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
  return Append({"EVAL", kScript, "1", key, value, expiry_ms});
}

absl::StatusOr<RedisAnswer> RedisConnection::TryAnswer() {
  ECPIPE_ASSIGN_OR_RETURN(RedisAnswer answer, TryAnyAnswer());
  if (!answer.has_come() || !std::exchange(auth_due_, false)) return answer;
  return TryAnyAnswer();
}

pollfd RedisConnection::poll_fd() const {
  if (context_ == nullptr) return dialler_->poll_fd();
  return {context_->fd, static_cast<short>(unsent_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
}

absl::Status RedisConnection::Queue(std::initializer_list<std::string_view> words) {
  std::vector<const char*> arguments;
  std::vector<size_t> lengths;
  for (const std::string_view word : words) {
    arguments.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* command = nullptr;
  const int size =
      Lib().format(&command, static_cast<int>(arguments.size()), arguments.data(), lengths.data());
  if (size < 0) return absl::ResourceExhaustedError("redis: out of memory");
  unsent_.append(command, static_cast<size_t>(size));
  Lib().free_command(command);
  return absl::OkStatus();
}

// Writes what is queued as far as that goes without blocking. Not by redisBufferWrite: that raises
// SIGPIPE, which ends a process that has linked the requestor library.
absl::Status RedisConnection::Flush() {
  ECPIPE_ASSIGN_OR_RETURN(const bool connected, Connected());
  while (connected && written_ < unsent_.size()) {
    const ssize_t sent =
        ::send(context_->fd, unsent_.data() + written_, unsent_.size() - written_, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0) return Gone(std::string(ErrnoStatus(errno, "send").message()));
    written_ += static_cast<size_t>(sent);
  }
  // Not at each turn: a frame of many MiB would be moved once for each piece of it.
  if (2 * written_ >= unsent_.size()) unsent_.erase(0, std::exchange(written_, 0));
  return absl::OkStatus();
}

absl::StatusOr<RedisAnswer> RedisConnection::TryAnyAnswer() {
  ECPIPE_RETURN_IF_ERROR(Flush());
  if (context_ == nullptr) return RedisAnswer();
  void* next = nullptr;
  while (true) {
    if (Lib().next_reply(context_, &next) != REDIS_OK) return Gone(context_->errstr);
    if (next != nullptr) break;
    // hiredis reads 16 KiB at a time: a frame takes several turns.
    const size_t before = context_->reader->len;
    if (Lib().read(context_) != REDIS_OK) return Gone(context_->errstr);
    if (context_->reader->len == before) return RedisAnswer();
    bytes_read_ += context_->reader->len - before;
  }
  auto* const reply = static_cast<redisReply*>(next);
  RedisAnswer owned(reply);
  if (reply->type == REDIS_REPLY_ERROR) return Refusal(std::string(reply->str, reply->len));
  return owned;
}

absl::Status RedisConnection::Refusal(const std::string& said) const {
  const std::string redis = "redis at " + address_;
  if (auth_due_) {
    return absl::UnauthenticatedError(redis + " does not take the password in " + password_file_ +
                                      ": " + said);
  }
  if (said.starts_with("NOAUTH")) {
    return absl::UnauthenticatedError(
        redis + " wants a password, and none is configured: set [redis] password_file, or " +
        "--redis-password-file (" + said + ")");
  }
  return absl::InternalError(redis + ": " + said);
}

absl::StatusOr<bool> RedisConnection::Connected() {
  if (context_ != nullptr) return true;
  absl::StatusOr<UniqueFd> fd = dialler_->Step();
  if (!fd.ok()) return AnnotatePeer(fd.status(), "redis at " + address_);
  if (!fd->valid()) return false;
  context_ = Lib().connect(fd->get());
  if (context_ == nullptr) return absl::ResourceExhaustedError("redis: out of memory");
  fd->release();
  dialler_.reset();                 // it has descriptors of its own
  context_->flags &= ~REDIS_BLOCK;  // hiredis takes any other socket for a blocking one
  return true;
}

absl::Status RedisConnection::Gone(const std::string& why) const {
  return absl::UnavailableError("redis at " + address_ + ": " + why);
}

}  // namespace ecpipe
