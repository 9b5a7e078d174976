// SPDX-License-Identifier: Apache-2.0
#include "shim/settings.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include "base/unique_fd.h"

namespace ecpipe_qfs {
namespace {

constexpr size_t kMaxConfigBytes = 64u << 10;
constexpr int kMaxMillis = 600'000;  // the protocol's limit of timeout-ms
constexpr size_t kMaxWordBytes = 255;

Failure Bad(const std::string& what) { return {ECPIPE_QFS_INVALID_ARGUMENT, what}; }

bool ParseNumber(const std::string& text, int low, int high, int* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end && *value >= low && *value <= high;
}

// "ADDRESS:PORT" or "[ADDRESS]:PORT". Names are refused: who looks one up cannot be interrupted.
Failure ParseTcp(const std::string& text, Settings* settings) {
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !ParseNumber(text.substr(colon + 1), 1, 65535, &port)) {
    return Bad("'" + text + "' is not ADDRESS:PORT");
  }
  std::string host = text.substr(0, colon);
  auto* v4 = reinterpret_cast<sockaddr_in*>(&settings->tcp);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&settings->tcp);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
      v6->sin6_family = AF_INET6;
      v6->sin6_port = htons(static_cast<uint16_t>(port));
      settings->tcp_bytes = sizeof *v6;
      return {};
    }
  } else if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    settings->tcp_bytes = sizeof *v4;
    return {};
  }
  return Bad("'" + host + "' is not a numeric IPv4 address, nor an IPv6 address in brackets");
}

Failure ParseEndpoint(const std::string& value, Settings* settings) {
  settings->endpoint = value;
  if (value.rfind("unix:/", 0) == 0) {
    settings->unix_path = value.substr(5);
    if (settings->unix_path.size() < sizeof(sockaddr_un::sun_path)) return {};
    return Bad("the path of a Unix socket has at most 107 bytes");
  }
  if (value.rfind("tcp:", 0) == 0) return ParseTcp(value.substr(4), settings);
  return Bad("an endpoint is unix:/PATH or tcp:ADDRESS:PORT");
}

bool IsLoopback(const Settings& settings) {
  if (!settings.unix_path.empty()) return true;
  if (settings.tcp.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&settings.tcp);
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&settings.tcp);
  return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}

Failure SetWord(const std::string& value, std::string* word) {
  if (value.size() > kMaxWordBytes) return Bad("a value has at most 255 bytes");
  for (const char c : value) {
    if (c < ' ' || c > '~') return Bad("a value has printable ASCII only");
  }
  *word = value;
  return {};
}

Failure SetMillis(const std::string& value, int low, int* millis) {
  if (ParseNumber(value, low, kMaxMillis, millis)) return {};
  return Bad("'" + value + "' is not a number of " + std::to_string(low) + " to " +
             std::to_string(kMaxMillis));
}

Failure SetFlag(const std::string& value, bool* flag) {
  if (value != "0" && value != "1") return Bad("'" + value + "' is not 0 or 1");
  *flag = value == "1";
  return {};
}

Failure Set(const std::string& key, const std::string& value, Settings* settings, bool* insecure) {
  if (key == "endpoint") return ParseEndpoint(value, settings);
  if (key == "tls-ca") return SetWord(value, &settings->tls_ca);
  if (key == "tls-certificate") return SetWord(value, &settings->tls_certificate);
  if (key == "tls-key") return SetWord(value, &settings->tls_key);
  if (key == "timeout-ms") return SetMillis(value, 1, &settings->timeout_ms);
  if (key == "stall-ms") return SetMillis(value, 1, &settings->stall_ms);
  if (key == "retry-ms") return SetMillis(value, 0, &settings->retry_ms);
  if (key == "scheme") return SetWord(value, &settings->scheme);
  if (key == "client") return SetWord(value, &settings->client);
  if (key == "cookie") return SetWord(value, &settings->cookie);
  if (key == "background") return SetFlag(value, &settings->background);
  if (key == "insecure") return SetFlag(value, insecure);
  return Bad("'" + key + "' is not a known key");
}

Failure CheckWhole(const Settings& settings, bool insecure) {
  if (settings.endpoint.empty()) return Bad("'endpoint' is missing");
  const bool whole = settings.tls_ca.empty() == settings.tls_certificate.empty() &&
                     settings.tls_ca.empty() == settings.tls_key.empty();
  if (!whole) return Bad("TLS needs tls-ca, tls-certificate and tls-key");
  if (settings.tls() && !settings.unix_path.empty()) return Bad("a Unix socket has no TLS");
  if (!IsLoopback(settings) && !settings.tls() && !insecure) {
    return Bad(settings.endpoint + " is not loopback and needs TLS, or insecure 1");
  }
  return {};
}

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::string ReadCookie(const Settings& settings) {
  constexpr size_t kSecretBytes = 64;
  char secret[kSecretBytes];
  if (settings.cookie.empty()) return "";
  const ecpipe::UniqueFd file(::open(settings.cookie.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid() || ::read(file.get(), secret, sizeof secret) != sizeof secret) return "";
  for (const char c : secret) {
    if ((c < '0' || c > '9') && (c < 'a' || c > 'f')) return "";
  }
  return std::string(secret, sizeof secret);
}

Failure SystemFailure(int code, const std::string& what, int error_number,
                      const std::string& advice) {
  char text[128] = "";
  const char* reason = strerror_r(error_number, text, sizeof text);
  return {code, what + ": " + reason + ". " + advice};
}

Failure ParseSettings(const std::string& text, const std::string& name, Settings* settings) {
  Settings parsed;
  bool insecure = false;
  std::set<std::string> seen;
  int number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = Trimmed(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const size_t blank = std::min(line.find_first_of(" \t"), line.size());
    const std::string key = line.substr(0, blank);
    const std::string value = Trimmed(line.substr(blank));
    Failure bad = value.empty()              ? Bad("'" + key + "' has no value")
                  : !seen.insert(key).second ? Bad("'" + key + "' comes twice")
                                             : Set(key, value, &parsed, &insecure);
    if (!bad.ok()) return Bad(name + ":" + std::to_string(number) + ": " + bad.message);
  }
  const Failure bad = CheckWhole(parsed, insecure);
  if (!bad.ok()) return Bad(name + ": " + bad.message);
  *settings = parsed;
  return {};
}

Failure LoadSettings(const std::string& path, Settings* settings) {
  const std::string advice = "Name a readable configuration file of libecpipe_qfs.so";
  const ecpipe::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return SystemFailure(ECPIPE_QFS_INVALID_ARGUMENT, path, errno, advice);
  std::string text(kMaxConfigBytes + 1, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + filled, text.size() - filled);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemFailure(ECPIPE_QFS_INVALID_ARGUMENT, path, errno, advice);
    filled += static_cast<size_t>(got);
  }
  if (filled > kMaxConfigBytes) return Bad(path + " is longer than 64 KiB. " + advice);
  text.resize(filled);
  return ParseSettings(text, path, settings);
}

}  // namespace ecpipe_qfs
