// SPDX-License-Identifier: Apache-2.0
// What `ecpipe doctor` judges, as the daemons tell it (doctor.proto has units and meanings).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/tls/certificates.h"
#include "requestor/client/coordinator_api.h"

namespace ecpipe {

struct DaemonFacts {
  std::string version;
  std::optional<int64_t> certificate_end;  // Unix seconds; none: it has no certificate
  uint64_t open_descriptors = 0;
  uint64_t max_descriptors = 0;
  std::optional<TlsFacts> tls;  // none: it has no certificate, or is too old to tell it
};

struct FormatFacts {
  static constexpr size_t kMostNamed = 3;  // of each sort, for people

  struct Misfit {
    std::string name;
    std::string what;
  };
  uint64_t names = 0;
  bool more = false;  // than these
  uint64_t headers = 0;
  std::vector<Misfit> unreadable;  // the first ones, as of the foreign
  uint64_t unreadable_count = 0;
  std::vector<Misfit> foreign;
  uint64_t foreign_count = 0;
  std::string wrong;  // empty: the root as a whole is of its kind of store
  std::string error;  // empty: it was looked at
};

struct DirectoryFacts {
  std::string path;
  std::string error;  // empty: it can be used
  bool takes_blocks = false;
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;           // 0: not known
  std::optional<FormatFacts> format;  // none: the helper is too old to tell it
};

// Which end refuses the other's certificate, and why. One of the three is set.
struct HandshakeFacts {
  std::string node;
  std::string coordinator_refuses;
  std::string helper_refuses;
  std::string no_handshake;  // why neither end saw a certificate
};

struct DialFacts {
  struct Failure {
    std::string node;  // empty: the coordinator
    std::string port;  // "control" or "data"
    std::string address;
    std::string error;
  };
  uint64_t dialled = 0;
  uint64_t failed = 0;
  uint64_t not_dialled = 0;
  std::vector<Failure> failures;  // the first ones
};

struct NodeFacts {
  std::string node;
  // UNIMPLEMENTED: its helper is too old. CANCELLED: it was not called. The rest needs OK.
  absl::Status status;
  double clock_ahead_seconds = 0;
  double clock_uncertainty_seconds = 0;
  DaemonFacts daemon;
  std::string store;
  std::vector<DirectoryFacts> roots;
  DialFacts dials;
  std::vector<std::string> features;
};

struct Examination {
  DaemonFacts coordinator;
  DirectoryFacts data_directory;
  DialFacts dials;
  std::vector<NodeFacts> nodes;  // the live ones
  std::vector<HandshakeFacts> handshakes;
  uint32_t handshakes_unknown = 0;  // not tried, or not answered in time
};

struct DoctorFacts {
  ClusterStatus status;
  // An error: why the coordinator examined nothing. UNIMPLEMENTED: it is too old.
  absl::StatusOr<Examination> examination;
  std::string own_version;
  std::optional<int64_t> own_certificate_end;  // of the command's certificate
  std::optional<TlsFacts> own_tls;
  int64_t now_unix_seconds = 0;
};

}  // namespace ecpipe
