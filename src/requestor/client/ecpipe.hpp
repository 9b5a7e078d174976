// SPDX-License-Identifier: Apache-2.0
//
// The C++17 interface of libecpipe: a header over ecpipe.h, which documents what each call does.
// The library itself shows C only, so that it does not matter which compiler built it.
//
// Errors are exceptions of type ecpipe::Error. An exception that the caller's callback throws ends
// the call and comes out of it. Objects can be moved; one that was moved from may only be assigned
// to or destroyed. Client and Canceller may be used by several threads at once, a Call by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <ecpipe.h>

namespace ecpipe {

// Of the library that runs.
inline std::string Version() { return ecpipe_version(); }

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  // One of the codes that ecpipe.h lists.
  int code() const noexcept { return code_; }

 private:
  int code_;
};

// As ecpipe_options; empty strings and zeros are the defaults.
struct Options {
  std::string coordinator;
  std::string name;
  double call_timeout_s = 0;
  double stall_timeout_s = 0;
  std::string tls_ca;
  std::string tls_certificate;
  std::string tls_key;
  std::string redis_password_file;
};

// As ecpipe_target.
struct Target {
  std::vector<std::string> block_ids;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string scheme;
  std::string transport;
  std::string verify;
  std::uint64_t slice_bytes = 0;
  double link_mbit = 0;
};

// As ecpipe_report.
struct Report {
  std::uint64_t repair_id = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_received = 0;
  double seconds = 0;
  std::uint64_t attempts = 0;
};

struct Progress {
  std::uint64_t verified_bytes = 0;
  std::uint64_t total_bytes = 0;  // 0: not known yet
};

// What follows up to Canceller is the header's own.
namespace detail {

inline const char* TextOrNull(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

inline std::vector<const char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

template <typename Struct>
Struct Sized() {
  Struct sized{};
  sized.struct_bytes = sizeof sized;
  return sized;
}

// Hands a function of ecpipe.h an error struct, and throws what comes back.
template <typename Function>
int Checked(Function function) {
  ecpipe_error error = Sized<ecpipe_error>();
  const int code = function(&error);
  if (code != ECPIPE_OK && code != ECPIPE_PENDING) throw Error(code, error.message);
  return code;
}

// The target in C; it borrows from `target`.
class CTarget {
 public:
  explicit CTarget(const Target& target) : ids_(Pointers(target.block_ids)) {
    value_.block_ids = ids_.data();
    value_.block_count = ids_.size();
    value_.offset = target.offset;
    value_.bytes = target.bytes;
    value_.scheme = TextOrNull(target.scheme);
    value_.transport = TextOrNull(target.transport);
    value_.verify = TextOrNull(target.verify);
    value_.slice_bytes = target.slice_bytes;
    value_.link_mbit = target.link_mbit;
  }
  const ecpipe_target* get() const { return &value_; }

 private:
  std::vector<const char*> ids_;
  ecpipe_target value_ = Sized<ecpipe_target>();
};

inline void CheckOneEach(const Target& target, const std::vector<std::string>& places) {
  if (places.size() == target.block_ids.size()) return;
  throw Error(ECPIPE_INVALID_ARGUMENT, std::to_string(places.size()) + " places for " +
                                           std::to_string(target.block_ids.size()) + " blocks");
}

inline Report ReportOf(const ecpipe_report& report) {
  Report value;
  value.repair_id = report.repair_id;
  value.block_bytes = report.block_bytes;
  value.bytes = report.bytes;
  value.bytes_received = report.bytes_received;
  value.seconds = report.seconds;
  value.attempts = report.attempts;
  return value;
}

template <auto kFree>
struct FreeWith {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

}  // namespace detail

// Cancels the blocking calls that it is given to, those under way and later ones.
class Canceller {
 public:
  Canceller() {
    ecpipe_canceller* canceller = nullptr;
    detail::Checked([&](ecpipe_error* error) { return ecpipe_canceller_new(&canceller, error); });
    canceller_.reset(canceller);
  }
  void Cancel() noexcept { ecpipe_canceller_cancel(canceller_.get()); }

 private:
  friend class Client;
  std::unique_ptr<ecpipe_canceller, detail::FreeWith<ecpipe_canceller_free>> canceller_;
};

// What a blocking call may be given. All is called on the thread that makes the call.
struct CallOptions {
  Canceller* canceller = nullptr;  // borrowed
  std::function<void(const Progress&)> progress;
};

// A submitted call. Destroying it cancels it, without waiting.
class Call {
 public:
  // To poll for POLLIN: Take() or Result() has something to say. It is the call's.
  int descriptor() const { return ecpipe_call_descriptor(call_.get()); }

  // The next bytes of a read, copied to `buffer`. Nothing: none have come, poll. 0: the read has
  // succeeded and all was taken. Throws when the read has failed. Never blocks.
  std::optional<std::size_t> Take(void* buffer, std::size_t size) {
    std::size_t taken = 0;
    const int code = detail::Checked([&](ecpipe_error* error) {
      return ecpipe_call_take(call_.get(), buffer, size, &taken, error);
    });
    return code == ECPIPE_PENDING ? std::nullopt : std::optional<std::size_t>(taken);
  }

  // How it has ended; nothing until then. Throws when it has failed. Never blocks.
  std::optional<Report> Result() {
    ecpipe_report report = detail::Sized<ecpipe_report>();
    const int code = detail::Checked(
        [&](ecpipe_error* error) { return ecpipe_call_result(call_.get(), &report, error); });
    return code == ECPIPE_PENDING ? std::nullopt : std::optional<Report>(detail::ReportOf(report));
  }

  Progress progress() const {
    Progress progress;
    ecpipe_call_progress(call_.get(), &progress.verified_bytes, &progress.total_bytes);
    return progress;
  }

  // Any thread.
  void Cancel() noexcept { ecpipe_call_cancel(call_.get()); }

 private:
  friend class Client;
  explicit Call(ecpipe_call* call) : call_(call) {}
  std::unique_ptr<ecpipe_call, detail::FreeWith<ecpipe_call_free>> call_;
};

// Destroying it cancels the submitted calls and waits for their threads, as ecpipe_close; no
// blocking call may be under way.
class Client {
 public:
  explicit Client(const Options& options) {
    ecpipe_options given = detail::Sized<ecpipe_options>();
    given.coordinator = options.coordinator.c_str();
    given.name = detail::TextOrNull(options.name);
    given.call_timeout_s = options.call_timeout_s;
    given.stall_timeout_s = options.stall_timeout_s;
    given.tls_ca = detail::TextOrNull(options.tls_ca);
    given.tls_certificate = detail::TextOrNull(options.tls_certificate);
    given.tls_key = detail::TextOrNull(options.tls_key);
    given.redis_password_file = detail::TextOrNull(options.redis_password_file);
    ecpipe_client* client = nullptr;
    detail::Checked([&](ecpipe_error* error) { return ecpipe_open(&given, &client, error); });
    client_.reset(client);
  }

  // Takes the next bytes of the range; false ends the read with ECPIPE_CANCELLED.
  using BytesFn = std::function<bool(const std::uint8_t* bytes, std::size_t size)>;

  Report Read(const Target& target, const BytesFn& take, const CallOptions& options = {}) {
    struct Taker {
      const BytesFn& take;
      std::exception_ptr thrown;
    } taker{take, nullptr};
    const auto trampoline = [](const void* bytes, std::size_t size, void* context) -> int {
      auto* to = static_cast<Taker*>(context);
      try {
        return to->take(static_cast<const std::uint8_t*>(bytes), size) ? 0 : 1;
      } catch (...) {
        to->thrown = std::current_exception();
        return 1;
      }
    };
    return Make(options,
                [&](const ecpipe_call_options* given, ecpipe_report* report, ecpipe_error* error) {
                  const int code = ecpipe_read(client_.get(), detail::CTarget(target).get(),
                                               trampoline, &taker, given, report, error);
                  if (taker.thrown) std::rethrow_exception(taker.thrown);
                  return code;
                });
  }

  // One path for each block of the target.
  Report RepairToFiles(const Target& target, const std::vector<std::string>& paths,
                       const CallOptions& options = {}) {
    detail::CheckOneEach(target, paths);
    const std::vector<const char*> places = detail::Pointers(paths);
    return Make(options,
                [&](const ecpipe_call_options* given, ecpipe_report* report, ecpipe_error* error) {
                  return ecpipe_repair_to_files(client_.get(), detail::CTarget(target).get(),
                                                places.data(), given, report, error);
                });
  }

  // One node for each block of the target.
  Report RepairToNodes(const Target& target, const std::vector<std::string>& nodes,
                       const CallOptions& options = {}) {
    detail::CheckOneEach(target, nodes);
    const std::vector<const char*> places = detail::Pointers(nodes);
    return Make(options,
                [&](const ecpipe_call_options* given, ecpipe_report* report, ecpipe_error* error) {
                  return ecpipe_repair_to_nodes(client_.get(), detail::CTarget(target).get(),
                                                places.data(), given, report, error);
                });
  }

  // `buffer_bytes`: what the call holds for Take() at most; 0: 1 MiB.
  Call SubmitRead(const Target& target, std::size_t buffer_bytes = 0) {
    ecpipe_submit_options options = detail::Sized<ecpipe_submit_options>();
    options.buffer_bytes = buffer_bytes;
    return Submit([&](ecpipe_call** call, ecpipe_error* error) {
      return ecpipe_submit_read(client_.get(), detail::CTarget(target).get(), &options, call,
                                error);
    });
  }

  Call SubmitRepairToFiles(const Target& target, const std::vector<std::string>& paths) {
    detail::CheckOneEach(target, paths);
    const std::vector<const char*> places = detail::Pointers(paths);
    return Submit([&](ecpipe_call** call, ecpipe_error* error) {
      return ecpipe_submit_repair_to_files(client_.get(), detail::CTarget(target).get(),
                                           places.data(), nullptr, call, error);
    });
  }

  Call SubmitRepairToNodes(const Target& target, const std::vector<std::string>& nodes) {
    detail::CheckOneEach(target, nodes);
    const std::vector<const char*> places = detail::Pointers(nodes);
    return Submit([&](ecpipe_call** call, ecpipe_error* error) {
      return ecpipe_submit_repair_to_nodes(client_.get(), detail::CTarget(target).get(),
                                           places.data(), nullptr, call, error);
    });
  }

  // Ends all calls that are under way. Any thread.
  void CancelAll() noexcept { ecpipe_cancel(client_.get()); }

 private:
  template <typename Function>
  Report Make(const CallOptions& options, Function function) {
    struct Shower {
      const CallOptions& options;
      std::exception_ptr thrown;
    } shower{options, nullptr};
    const auto show = [](std::uint64_t verified, std::uint64_t total, void* context) -> int {
      auto* to = static_cast<Shower*>(context);
      try {
        to->options.progress(Progress{verified, total});
        return 0;
      } catch (...) {
        to->thrown = std::current_exception();
        return 1;
      }
    };
    ecpipe_call_options given = detail::Sized<ecpipe_call_options>();
    if (options.canceller != nullptr) given.canceller = options.canceller->canceller_.get();
    if (options.progress) given.progress = show;
    given.progress_context = &shower;
    ecpipe_report report = detail::Sized<ecpipe_report>();
    detail::Checked([&](ecpipe_error* error) {
      const int code = function(&given, &report, error);
      if (shower.thrown) std::rethrow_exception(shower.thrown);
      return code;
    });
    return detail::ReportOf(report);
  }

  template <typename Function>
  static Call Submit(Function function) {
    ecpipe_call* call = nullptr;
    detail::Checked([&](ecpipe_error* error) { return function(&call, error); });
    return Call(call);
  }

  std::unique_ptr<ecpipe_client, detail::FreeWith<ecpipe_close>> client_;
};

}  // namespace ecpipe
