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

struct Hiredis;

// What a server says to one command.
class RedisReply {
 public:
  RedisReply() = default;
  explicit RedisReply(redisReply* reply) : reply_(reply) {}

  bool has_come() const { return reply_ != nullptr; }
  // Of BLPOP: the value, which lives as long as this. DATA_LOSS: it is not a key and a value.
  absl::StatusOr<std::string_view> Popped() const;

 private:
  struct Free {
    void operator()(redisReply* reply) const;
  };
  std::unique_ptr<redisReply, Free> reply_;
};

// Never blocks: commands are queued, also before the connection stands; replies come in order.
// UNAVAILABLE: the server has gone. UNAUTHENTICATED: it does not take the password, or wants one
// and is not given it. INTERNAL: it refused a command. One thread at a time.
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

  // The next reply, if one has come. AUTH's own is dealt with here.
  absl::StatusOr<RedisReply> TryReply();

  pollfd poll_fd() const;
  bool all_written() const { return unsent_.empty(); }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  RedisConnection(const Hiredis& hiredis, Dialler dialler, const std::string& address,
                  const std::string& password_file);

  absl::Status Queue(std::initializer_list<std::string_view> words);
  absl::Status Flush();
  absl::StatusOr<RedisReply> TryAnyReply();
  absl::StatusOr<bool> Connected();
  absl::Status Refusal(const std::string& said) const;
  absl::Status Gone(const std::string& why) const;

  const Hiredis& hiredis_;           // never unloaded
  std::optional<Dialler> dialler_;   // until there is a context
  redisContext* context_ = nullptr;  // has the socket
  const std::string address_;
  const std::string password_file_;  // empty: no AUTH is sent
  bool auth_due_;                    // the next reply is AUTH's
  std::string unsent_;               // commands that are not written yet, and before them...
  size_t written_ = 0;               // ...so many bytes that are
  uint64_t bytes_read_ = 0;
};

}  // namespace ecpipe
