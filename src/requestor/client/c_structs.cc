// SPDX-License-Identifier: Apache-2.0
#include "requestor/client/c_structs.h"

#include <limits>
#include <new>

#include "base/bytes/utf8_text.h"
#include "base/status.h"

namespace ecpipe {
namespace {

// The sizes of the structs in the first version of this interface: to behind its last member. A
// struct that grows leaves these as they are.
constexpr size_t kErrorBytes = offsetof(ecpipe_error, message) + sizeof(ecpipe_error::message);
constexpr size_t kOptionsBytes = offsetof(ecpipe_options, tls_key) + sizeof(char*);
constexpr size_t kTargetBytes = offsetof(ecpipe_target, slice_bytes) + sizeof(uint64_t);
constexpr size_t kReportBytes = offsetof(ecpipe_report, attempts) + sizeof(uint64_t);
constexpr size_t kCallOptionsBytes =
    offsetof(ecpipe_call_options, progress_context) + sizeof(void*);
constexpr size_t kSubmitOptionsBytes =
    offsetof(ecpipe_submit_options, buffer_bytes) + sizeof(size_t);
// Padding at a struct's end would be a hole in what a later version takes for a member.
static_assert(sizeof(ecpipe_error) == kErrorBytes);
static_assert(sizeof(ecpipe_options) ==
              offsetof(ecpipe_options, redis_password_file) + sizeof(char*));
static_assert(sizeof(ecpipe_target) == offsetof(ecpipe_target, link_mbit) + sizeof(double));
static_assert(sizeof(ecpipe_report) == kReportBytes);
static_assert(sizeof(ecpipe_call_options) == kCallOptionsBytes);
static_assert(sizeof(ecpipe_submit_options) == kSubmitOptionsBytes);

// A day and more is no timeout, and what a Duration cannot hold is no number.
constexpr double kMostSeconds = 1e6;
// Far beyond any code's parity; the coordinator knows the right number.
constexpr size_t kMostBlocks = 256;
// Told where there is no memory for another text.
constexpr char kOutOfMemory[] = "out of memory";
constexpr size_t kDefaultBufferBytes = 1 << 20;
constexpr size_t kMostBufferBytes = 1 << 30;

bool CanBeStruct(size_t struct_bytes, size_t least) {
  return struct_bytes >= least && struct_bytes <= kMostStructBytes;
}

absl::StatusOr<std::string> Text(const char* text, const std::string& name) {
  if (text == nullptr) return std::string();
  if (!IsCleanText(text)) {
    return absl::InvalidArgumentError(name + " must be UTF-8 without control characters");
  }
  return std::string(text);
}

absl::StatusOr<std::string> RequiredText(const char* text, const std::string& name) {
  if (text == nullptr) return absl::InvalidArgumentError(name + " must not be NULL");
  return Text(text, name);
}

// Negated, so that NaN fails.
absl::Status SetSeconds(double seconds, const char* name, Duration* duration) {
  if (!(seconds >= 0 && seconds <= kMostSeconds)) {
    return absl::InvalidArgumentError(std::string(name) + " must be 0 to 1000000 seconds");
  }
  if (seconds > 0) *duration = FromSeconds(seconds);
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStructBytes(const char* name, size_t struct_bytes, size_t least) {
  if (CanBeStruct(struct_bytes, least)) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(name) + ".struct_bytes is " +
                                    std::to_string(struct_bytes) + ": set it to sizeof(ecpipe_" +
                                    name + ")");
}

absl::StatusOr<RequestorOptions> OptionsOf(const ecpipe_options* options) {
  ECPIPE_ASSIGN_OR_RETURN(const ecpipe_options given, Known(options, "options", kOptionsBytes));
  RequestorOptions wanted;
  ECPIPE_ASSIGN_OR_RETURN(wanted.coordinator, RequiredText(given.coordinator, "coordinator"));
  ECPIPE_ASSIGN_OR_RETURN(wanted.name, Text(given.name, "name"));
  ECPIPE_RETURN_IF_ERROR(SetSeconds(given.call_timeout_s, "call_timeout_s", &wanted.call_timeout));
  ECPIPE_RETURN_IF_ERROR(
      SetSeconds(given.stall_timeout_s, "stall_timeout_s", &wanted.part.stall_timeout));
  TlsFiles files;
  // Paths are what they are on this machine, UTF-8 or not.
  if (given.tls_ca != nullptr) files.ca = given.tls_ca;
  if (given.tls_certificate != nullptr) files.certificate = given.tls_certificate;
  if (given.tls_key != nullptr) files.key = given.tls_key;
  ECPIPE_ASSIGN_OR_RETURN(wanted.tls, TlsContext::CreateIfEnabled(files));
  if (given.redis_password_file != nullptr) wanted.redis_password_file = given.redis_password_file;
  return wanted;
}

absl::StatusOr<RepairTarget> TargetOf(const ecpipe_target* target) {
  ECPIPE_ASSIGN_OR_RETURN(const ecpipe_target given, Known(target, "target", kTargetBytes));
  if (given.block_count == 0 || given.block_count > kMostBlocks) {
    return absl::InvalidArgumentError("block_count must be 1 to " + std::to_string(kMostBlocks) +
                                      ", not " + std::to_string(given.block_count));
  }
  if (given.block_ids == nullptr) {
    return absl::InvalidArgumentError("block_ids must not be NULL");
  }
  RepairTarget wanted;
  for (size_t i = 0; i < given.block_count; ++i) {
    ECPIPE_ASSIGN_OR_RETURN(
        std::string id, RequiredText(given.block_ids[i], "block_ids[" + std::to_string(i) + "]"));
    wanted.block_ids.push_back(std::move(id));
  }
  wanted.offset = given.offset;
  wanted.bytes = given.bytes;
  if (given.slice_bytes > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError("slice_bytes must be less than 4 GiB");
  }
  wanted.slice_bytes = static_cast<uint32_t>(given.slice_bytes);
  wanted.link_mbit = given.link_mbit;
  ECPIPE_ASSIGN_OR_RETURN(wanted.scheme, Text(given.scheme, "scheme"));
  ECPIPE_ASSIGN_OR_RETURN(wanted.transport, Text(given.transport, "transport"));
  ECPIPE_ASSIGN_OR_RETURN(wanted.verify, Text(given.verify, "verify"));
  return wanted;
}

absl::StatusOr<std::vector<std::string>> PlacesOf(const char* const* places, size_t count,
                                                  const std::string& what) {
  if (places == nullptr) return absl::InvalidArgumentError("no " + what + "s are given");
  std::vector<std::string> wanted;
  for (size_t i = 0; i < count; ++i) {
    if (places[i] == nullptr || *places[i] == '\0') {
      return absl::InvalidArgumentError(what + " " + std::to_string(i) + " is empty");
    }
    wanted.emplace_back(places[i]);
  }
  return wanted;
}

absl::StatusOr<ecpipe_call_options> CallOptionsOf(const ecpipe_call_options* options) {
  if (options == nullptr) return ecpipe_call_options{};
  return Known(options, "call_options", kCallOptionsBytes);
}

absl::StatusOr<size_t> BufferBytesOf(const ecpipe_submit_options* options) {
  if (options == nullptr) return kDefaultBufferBytes;
  ECPIPE_ASSIGN_OR_RETURN(const ecpipe_submit_options given,
                          Known(options, "submit_options", kSubmitOptionsBytes));
  if (given.buffer_bytes > kMostBufferBytes) {
    return absl::InvalidArgumentError("buffer_bytes must be at most " +
                                      std::to_string(kMostBufferBytes));
  }
  return given.buffer_bytes == 0 ? kDefaultBufferBytes : given.buffer_bytes;
}

int CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnauthenticated:
      return static_cast<int>(code);
    default:
      return ECPIPE_INTERNAL;
  }
}

absl::Status CheckOutStructs(const ecpipe_report* report, const ecpipe_error* error) {
  if (error != nullptr) {
    ECPIPE_RETURN_IF_ERROR(CheckStructBytes("error", error->struct_bytes, kErrorBytes));
  }
  if (report == nullptr) return absl::OkStatus();
  return CheckStructBytes("report", report->struct_bytes, kReportBytes);
}

int Tell(const absl::Status& status, ecpipe_error* error) {
  ecpipe_error told{};
  told.code = CodeOf(status.code());
  if (error == nullptr || !CanBeStruct(error->struct_bytes, kErrorBytes)) return told.code;
  try {
    const std::string message = CleanText(std::string(status.message()));
    const std::string_view cut = CutText(message, sizeof told.message - 1);
    std::memcpy(told.message, cut.data(), cut.size());
  } catch (const std::bad_alloc&) {
    told.code = ECPIPE_RESOURCE_EXHAUSTED;
  }
  const bool out_of_memory = told.code == ECPIPE_RESOURCE_EXHAUSTED && told.message[0] == '\0';
  if (out_of_memory) std::memcpy(told.message, kOutOfMemory, sizeof kOutOfMemory);
  FillKnown(told, error);
  return told.code;
}

void Fill(const RepairReport& report, ecpipe_report* filled) {
  if (filled == nullptr) return;
  ecpipe_report value{};
  value.repair_id = report.repair_id;
  value.block_bytes = report.block_bytes;
  value.bytes = report.bytes;
  value.bytes_received = report.bytes_received;
  value.seconds = report.seconds;
  value.attempts = report.attempts;
  FillKnown(value, filled);
}

}  // namespace ecpipe
