// SPDX-License-Identifier: Apache-2.0
// A file of its own: the kernel's header has the counters, and does not go together with
// <netinet/tcp.h>.
#include "net/tcp_network_time.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

namespace ecpipe {

double TcpNetworkSeconds(int fd) {
  tcp_info info{};  // what an older kernel does not fill in stays 0
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  const auto busy = static_cast<int64_t>(info.tcpi_busy_time);
  const auto waited = static_cast<int64_t>(info.tcpi_rwnd_limited + info.tcpi_sndbuf_limited);
  return static_cast<double>(std::max<int64_t>(0, busy - waited)) / 1e6;
}

}  // namespace ecpipe
