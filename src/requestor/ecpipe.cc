// SPDX-License-Identifier: Apache-2.0
#include "requestor/ecpipe.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "common/status.h"
#include "requestor/requestor.h"

struct ecpipe_client {
  std::unique_ptr<ecpipe::Requestor> requestor;
};

namespace {

using ecpipe::RepairReport;

int Tell(const absl::Status& status, ecpipe_error* error) {
  const int code = static_cast<int>(status.code());
  if (error == nullptr) return code;
  error->code = code;
  const size_t length = std::min(status.message().size(), sizeof error->message - 1);
  if (length > 0) std::memcpy(error->message, status.message().data(), length);
  error->message[length] = '\0';
  return code;
}

std::string Text(const char* text) { return text == nullptr ? std::string() : std::string(text); }

// Runs a call and keeps exceptions (of memory, in practice) inside the library.
template <typename Call>
int Guard(ecpipe_error* error, Call call) {
  try {
    return Tell(call(), error);
  } catch (const std::bad_alloc&) {
    return Tell(absl::ResourceExhaustedError("out of memory"), error);
  } catch (const std::exception& failure) {
    return Tell(absl::InternalError(failure.what()), error);
  }
}

absl::StatusOr<ecpipe::RepairTarget> TargetOf(const ecpipe_client* client,
                                              const ecpipe_target* target) {
  if (client == nullptr || target == nullptr || target->block_id == nullptr) {
    return absl::InvalidArgumentError("client, target and block_id must not be NULL");
  }
  return ecpipe::RepairTarget{.block_ids = {target->block_id},
                              .offset = target->offset,
                              .bytes = target->bytes,
                              .scheme = Text(target->scheme),
                              .slice_bytes = target->slice_bytes,
                              .transport = Text(target->transport)};
}

absl::Status Fill(const absl::StatusOr<RepairReport>& result, ecpipe_report* report) {
  if (!result.ok()) return result.status();
  if (report != nullptr) {
    *report = {result->repair_id, result->block_bytes, result->bytes, result->bytes_received,
               result->seconds};
  }
  return absl::OkStatus();
}

absl::Status Open(const ecpipe_options* options, ecpipe_client** client) {
  if (options == nullptr || client == nullptr || options->coordinator == nullptr) {
    return absl::InvalidArgumentError("options, coordinator and client must not be NULL");
  }
  ecpipe::RequestorOptions requestor_options;
  requestor_options.coordinator = options->coordinator;
  requestor_options.name = Text(options->name);
  if (options->call_timeout_s > 0) {
    requestor_options.call_timeout = ecpipe::FromSeconds(options->call_timeout_s);
  }
  if (options->stall_timeout_s > 0) {
    requestor_options.part.stall_timeout = ecpipe::FromSeconds(options->stall_timeout_s);
  }
  ECPIPE_ASSIGN_OR_RETURN(
      requestor_options.tls,
      ecpipe::TlsContext::CreateIfEnabled(
          {Text(options->tls_ca), Text(options->tls_certificate), Text(options->tls_key)}));
  ECPIPE_ASSIGN_OR_RETURN(std::unique_ptr<ecpipe::Requestor> requestor,
                          ecpipe::Requestor::Connect(std::move(requestor_options)));
  *client = new ecpipe_client{std::move(requestor)};
  return absl::OkStatus();
}

}  // namespace

int ecpipe_open(const ecpipe_options* options, ecpipe_client** client, ecpipe_error* error) {
  return Guard(error, [&] { return Open(options, client); });
}

int ecpipe_read(ecpipe_client* client, const ecpipe_target* target, ecpipe_bytes_fn take,
                void* context, ecpipe_report* report, ecpipe_error* error) {
  return Guard(error, [&]() -> absl::Status {
    ECPIPE_ASSIGN_OR_RETURN(const ecpipe::RepairTarget wanted, TargetOf(client, target));
    if (take == nullptr) return absl::InvalidArgumentError("the callback must not be NULL");
    const auto sink = [&](std::span<const uint8_t> bytes) {
      return take(bytes.data(), bytes.size(), context) == 0
                 ? absl::OkStatus()
                 : absl::CancelledError("the callback refused the bytes");
    };
    return Fill(client->requestor->Read(wanted, sink), report);
  });
}

int ecpipe_repair_to_file(ecpipe_client* client, const ecpipe_target* target, const char* path,
                          ecpipe_report* report, ecpipe_error* error) {
  return Guard(error, [&]() -> absl::Status {
    ECPIPE_ASSIGN_OR_RETURN(const ecpipe::RepairTarget wanted, TargetOf(client, target));
    if (path == nullptr) return absl::InvalidArgumentError("the path must not be NULL");
    return Fill(client->requestor->RepairToFiles(wanted, {path}), report);
  });
}

void ecpipe_cancel(ecpipe_client* client) {
  if (client != nullptr) client->requestor->Cancel();
}

void ecpipe_close(ecpipe_client* client) { delete client; }
