// SPDX-License-Identifier: Apache-2.0
// The structs of ecpipe.h as the C++ library has them. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "requestor/client/ecpipe.h"
#include "requestor/client/requestor.h"

namespace ecpipe {

// Far more than a struct will ever have: a size beyond is no size.
inline constexpr size_t kMostStructBytes = 1 << 16;

// INVALID_ARGUMENT unless `struct_bytes` may be the size of this struct, whose first version had
// `least` bytes.
absl::Status CheckStructBytes(const char* name, size_t struct_bytes, size_t least);

// A caller's struct as this library knows it: members that the caller does not have are zero.
// INVALID_ARGUMENT: no struct, a size that cannot be, or a member that is set and that the library
// does not have.
template <typename Struct>
absl::StatusOr<Struct> Known(const Struct* given, const char* name, size_t least) {
  if (given == nullptr) return absl::InvalidArgumentError(std::string(name) + " must not be NULL");
  if (absl::Status fits = CheckStructBytes(name, given->struct_bytes, least); !fits.ok()) {
    return fits;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  if (std::any_of(bytes + std::min(sizeof(Struct), given->struct_bytes),
                  bytes + given->struct_bytes, [](unsigned char byte) { return byte != 0; })) {
    return absl::InvalidArgumentError(std::string(name) +
                                      " has a member set that this version of libecpipe does not "
                                      "know: use a newer libecpipe");
  }
  Struct known{};
  std::memcpy(&known, given, std::min(sizeof(Struct), given->struct_bytes));
  return known;
}

// Fills the members that both know; the caller's size has passed CheckStructBytes and stays.
template <typename Struct>
void FillKnown(Struct value, Struct* caller) {
  value.struct_bytes = caller->struct_bytes;
  std::memcpy(caller, &value, std::min(sizeof(Struct), caller->struct_bytes));
}

// INVALID_ARGUMENT for what no repair can have; where a value is right is the coordinator's matter.
absl::StatusOr<RequestorOptions> OptionsOf(const ecpipe_options* options);
absl::StatusOr<RepairTarget> TargetOf(const ecpipe_target* target);
// `what` each of the target's blocks has one of, "path" or "node".
absl::StatusOr<std::vector<std::string>> PlacesOf(const char* const* places, size_t count,
                                                  const std::string& what);
// Null: none.
absl::StatusOr<ecpipe_call_options> CallOptionsOf(const ecpipe_call_options* options);
// How many bytes a read may hold.
absl::StatusOr<size_t> BufferBytesOf(const ecpipe_submit_options* options);

// One of the codes that ecpipe.h lists; INTERNAL for a code that it does not.
int CodeOf(absl::StatusCode code);
// Null is fine for both; their sizes have been checked.
absl::Status CheckOutStructs(const ecpipe_report* report, const ecpipe_error* error);
// Fills the error and returns its code. Does not throw: where there is no memory for the message,
// that is the error.
int Tell(const absl::Status& status, ecpipe_error* error);
void Fill(const RepairReport& report, ecpipe_report* filled);

}  // namespace ecpipe
