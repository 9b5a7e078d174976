// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// How long the connection had data under way that nothing but the network held up, neither the
// receiver's window nor our own send buffer. 0 where the kernel does not count that (Linux before
// 4.10).
double TcpNetworkSeconds(int fd);

}  // namespace ecpipe
