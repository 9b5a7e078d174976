// SPDX-License-Identifier: Apache-2.0
// One connection to a redis-server, over hiredis.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/dialler.h"

struct redisContext;  // of hiredis
struct redisReply;

namespace ecpipe {

// What a server answers to one command; empty: nothing has come yet.
class RedisAnswer {
 public:
  RedisAnswer() = default;
  explicit RedisAnswer(redisReply* reply) : reply_(reply) {}  // which it will free

  bool has_come() const { return reply_ != nullptr; }
  // Of BLPOP: the value, which lives as long as this. DATA_LOSS: the answer is not a key and a
  // value. Requires has_come().
  absl::StatusOr<std::string_view> Popped() const;

 private:
  struct Free {
    void operator()(redisReply* reply) const;
  };
  std::unique_ptr<redisReply, Free> reply_;
};

// After Open() nothing blocks: commands are queued, also before the connection stands; answers come
// in order. UNAVAILABLE, DEADLINE_EXCEEDED: the server is not reached, or has gone.
// UNAUTHENTICATED: it does not take the password, or wants one and is not given it. INTERNAL: it
// refused a command. One thread at a time.
class RedisConnection {
 public:
  // FAILED_PRECONDITION: the library that speaks to redis is not installed. It is looked for once
  // in the life of a process.
  static absl::Status CheckLibrary();
  // `address` is "host:port". `password_file`: AUTH comes first, with what it holds; empty: no
  // AUTH.
  static absl::StatusOr<std::unique_ptr<RedisConnection>> Open(const std::string& address,
                                                               const std::string& password_file);
  ~RedisConnection();

  absl::Status Append(std::initializer_list<std::string_view> words);
  // Appends a value to a list that is gone after `expiry_ms`, in one step: of two, a process that
  // is killed may leave the first one done, and a list for ever.
  absl::Status Push(const std::string& key, const std::string& value, const std::string& expiry_ms);

  // The next answer. AUTH's own is dealt with here.
  absl::StatusOr<RedisAnswer> TryAnswer();

  pollfd poll_fd() const;
  bool all_written() const { return unsent_.empty(); }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  RedisConnection(Dialler dialler, const std::string& address, const std::string& password_file);

  absl::Status Queue(std::initializer_list<std::string_view> words);
  absl::Status Flush();
  absl::StatusOr<RedisAnswer> TryAnyAnswer();
  absl::StatusOr<bool> Connected();
  absl::Status Refusal(const std::string& said) const;
  absl::Status Gone(const std::string& why) const;

  std::optional<Dialler> dialler_;   // until there is a context
  redisContext* context_ = nullptr;  // has the socket
  const std::string address_;
  const std::string password_file_;  // empty: no AUTH is sent
  bool auth_due_;                    // the next answer is AUTH's
  std::string unsent_;               // commands; their first written_ bytes are written already
  size_t written_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace ecpipe
