// SPDX-License-Identifier: Apache-2.0
#include "coordinator/edge/address_rule.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include "base/status.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

constexpr int kMappedBits = 96;  // of an IPv4 address in an IPv6 one, before its own 32

// 16 bytes, IPv4 as mapped into IPv6. Nothing for a name.
std::optional<std::string> BytesOfNumeric(const std::string& host) {
  in6_addr v6{};
  if (::inet_pton(AF_INET6, host.c_str(), &v6) != 1 &&
      ::inet_pton(AF_INET6, ("::ffff:" + host).c_str(), &v6) != 1) {
    return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(&v6), sizeof v6);
}

std::optional<std::string> BytesOf(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return std::string(reinterpret_cast<const char*>(&v6), sizeof v6);
  }
  if (address->sa_family != AF_INET) return std::nullopt;
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  return BytesOfNumeric(text);
}

bool IsOfThisHost(const std::string& address) {
  const bool v4_loopback =
      address.compare(0, 12, *BytesOfNumeric("127.0.0.0"), 0, 12) == 0 && address[12] == 127;
  if (v4_loopback || address == *BytesOfNumeric("::1")) return true;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(interfaces, ::freeifaddrs);
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
    if (BytesOf(each->ifa_addr) == address) return true;
  }
  return false;
}

// "ipv4:10.0.0.1:5" and "ipv6:%5Bfd00::1%25eth0%5D:5". Nothing for another kind.
std::optional<std::string> BytesOfPeer(std::string peer) {
  const size_t end = peer.rfind(':');
  if (peer.rfind("ipv4:", 0) == 0) return BytesOfNumeric(peer.substr(5, end - 5));
  if (peer.rfind("ipv6:", 0) != 0) return std::nullopt;
  std::string host = peer.substr(5, end - 5);
  for (const std::string bracket : {"%5B", "%5D", "[", "]"}) {
    if (const size_t at = host.find(bracket); at != std::string::npos) {
      host.erase(at, bracket.size());
    }
  }
  return BytesOfNumeric(host.substr(0, host.find('%')));
}

bool SameBits(const std::string& a, const std::string& b, int bits) {
  const auto whole = static_cast<size_t>(bits / 8);
  if (a.compare(0, whole, b, 0, whole) != 0) return false;
  const int rest = bits % 8;
  const auto mask = static_cast<uint8_t>(0xff << (8 - rest));
  return rest == 0 ||
         ((static_cast<uint8_t>(a[whole]) ^ static_cast<uint8_t>(b[whole])) & mask) == 0;
}

}  // namespace

absl::StatusOr<AddressRule> AddressRule::Create(const std::vector<std::string>& allowed,
                                                HostLookups* lookups) {
  AddressRule rule(lookups);
  for (const std::string& text : allowed) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos) {
      rule.hosts_.push_back(text);
      continue;
    }
    const std::string host = text.substr(0, slash);
    const std::optional<std::string> bytes = BytesOfNumeric(host);
    const bool is_v4 = host.find(':') == std::string::npos;
    int bits = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + slash + 1, end, bits);
    if (!bytes || error != std::errc() || rest != end || bits < 0 || bits > (is_v4 ? 32 : 128)) {
      return absl::InvalidArgumentError("'" + text + "' is not a network such as 10.1.0.0/16");
    }
    rule.networks_.push_back({*bytes, bits + (is_v4 ? kMappedBits : 0)});
  }
  return rule;
}

bool AddressRule::AllowsHost(const std::string& host) const {
  return std::find(hosts_.begin(), hosts_.end(), host) != hosts_.end();
}

bool AddressRule::AllowsAddress(const std::string& bytes) const {
  return std::any_of(networks_.begin(), networks_.end(), [&](const Network& network) {
    return SameBits(bytes, network.bytes, network.prefix_bits);
  });
}

// A node may have moved: its helper tries again twice a second.
constexpr Duration kLongestKnown = std::chrono::seconds(2);

absl::Status AddressRule::Check(const NodeRecord& node, const std::string& peer,
                                TimePoint deadline) const {
  const std::optional<std::string> caller = BytesOfPeer(peer);
  const bool here = caller && IsOfThisHost(*caller);
  for (const std::string& text : {node.control_address, node.data_address, node.redis_address}) {
    const absl::StatusOr<HostPort> address = ParseHostPort(text);
    if (!address.ok()) continue;  // refused elsewhere, or there is none
    if (AllowsHost(address->host)) continue;
    const auto found = lookups_->Begin(address->host, kLongestKnown)->Await(deadline);
    if (!found.ok() && !HostLookups::NobodyKnows(found.status())) {
      return absl::UnavailableError("address " + text + " of node " + node.node_id +
                                    " cannot be checked: " + std::string(found.status().message()));
    }
    // A name that nobody knows leads nowhere.
    const HostLookups::Addresses addresses = found.ok() ? *found : HostLookups::Addresses();
    const bool fits = std::any_of(addresses.begin(), addresses.end(), [&](const std::string& each) {
      const std::optional<std::string> bytes = BytesOfNumeric(each.substr(0, each.find('%')));
      return bytes && (bytes == caller || (here && IsOfThisHost(*bytes)) || AllowsAddress(*bytes));
    });
    if (fits) continue;
    return absl::PermissionDeniedError(
        "node " + node.node_id + " calls from " + peer + " and says that its address is " + text +
        "; if that is right, add its host or network to [coordinator] node_addresses");
  }
  return absl::OkStatus();
}

}  // namespace ecpipe
