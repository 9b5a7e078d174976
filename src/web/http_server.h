// SPDX-License-Identifier: Apache-2.0
// A small web server of a daemon: pages that are only read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "net/tls/tls.h"

namespace ecpipe {

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  // What a browser may do with it. The default is for data: one that takes it for a document runs
  // and loads nothing, and shows it in nobody's frame.
  std::string content_policy = "default-src 'none'; frame-ancestors 'none'";
};

class HttpServer {
 public:
  // By path, e.g. "/metrics". A page is called from the server's threads, several at once.
  using Pages = std::map<std::string, std::function<HttpReply()>>;

  // Serves the pages at `address`, "host:port"; port 0 takes a free port. With `tls`, HTTPS only,
  // and peers need a certificate of the CA, of any role. Other paths are answered with 404, other
  // methods than GET and HEAD with 405. A connection serves one request. All of that must come
  // within two seconds, handshake included, and all of the answer be taken within ten; beyond 32
  // connections the address with the most loses its oldest: so slow clients hold up nobody. Where
  // no connection can be taken, for want of descriptors or memory, it tries again until one can.
  // UNAVAILABLE: it cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           std::shared_ptr<TlsContext> tls,
                                                           Pages pages);
  // Waits for the pages that are being made.
  ~HttpServer();

  // "host:port", with the port that is in use.
  const std::string& address() const;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace ecpipe
