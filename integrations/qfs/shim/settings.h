// SPDX-License-Identifier: Apache-2.0
// The library's configuration: lines `key value`, as deploy/qfs-shim.conf explains them.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "shim/failure.h"

namespace ecpipe_qfs {

struct Settings {
  std::string endpoint;   // as the file says it, for messages
  std::string unix_path;  // empty: `tcp` holds
  sockaddr_storage tcp{};
  socklen_t tcp_bytes = 0;
  std::string tls_ca;  // all three or none
  std::string tls_certificate;
  std::string tls_key;
  int timeout_ms = 10'000;  // until the first byte
  int stall_ms = 30'000;    // for each MiB after it
  int retry_ms = 30'000;    // how long an endpoint that does not answer is not asked again
  std::string scheme;
  std::string client = "qfs";
  bool background = true;
  std::string cookie;  // a path: the secret of an endpoint on TCP; empty: none

  bool tls() const { return !tls_ca.empty(); }
};

// What the cookie file says now; empty without one, or if it cannot be read: the endpoint then says
// what it wants.
std::string ReadCookie(const Settings& settings);

// INVALID_ARGUMENT: "NAME:LINE: what".
Failure ParseSettings(const std::string& text, const std::string& name, Settings* settings);
// The same of a file, which is at most 64 KiB.
Failure LoadSettings(const std::string& path, Settings* settings);

}  // namespace ecpipe_qfs
