// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace ecpipe {

// Where an endpoint listens. Destroying it closes it.
class EndpointSocket {
 public:
  // `address` as in net/endpoint_address.h; port 0 picks a free one. `mode` is the mode of
  // the socket file, which says who may connect. A socket that a killed process has left is
  // replaced. INVALID_ARGUMENT: another form. ALREADY_EXISTS: another process listens there, or the
  // file is not a socket.
  static absl::StatusOr<EndpointSocket> Listen(const std::string& address, uint32_t mode);
  EndpointSocket(EndpointSocket&& other) noexcept = default;
  EndpointSocket& operator=(EndpointSocket&&) = delete;
  ~EndpointSocket() { Close(); }

  // Closes the socket, and removes the file of a Unix one. Connections stay.
  void Close();
  // -1: it is closed.
  int fd() const { return fd_.get(); }
  // The address as in Listen(), with the port that was picked.
  const std::string& address() const { return address_; }
  // Whether only this host can reach it.
  bool local() const { return local_; }

 private:
  EndpointSocket(UniqueFd fd, std::string address, std::string path, bool local)
      : fd_(std::move(fd)), address_(std::move(address)), path_(std::move(path)), local_(local) {}

  UniqueFd fd_;
  std::string address_;
  std::string path_;  // of the socket file; empty: TCP
  bool local_;
};

}  // namespace ecpipe
