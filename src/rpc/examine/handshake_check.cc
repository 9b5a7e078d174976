// SPDX-License-Identifier: Apache-2.0
#include "rpc/examine/handshake_check.h"

#include <poll.h>

#include <array>
#include <cerrno>

#include "base/bytes/utf8_text.h"
#include "base/side_by_side.h"
#include "base/simulator.h"
#include "net/dialler.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

constexpr size_t kHandshakesAtOnce = 32;

std::string TextOf(const absl::Status& status) { return CleanText(std::string(status.message())); }

// False: nothing came by then.
bool Await(int fd, short events, TimePoint end) {
  const Duration left = end - Clock::System().Now();
  std::vector<pollfd> polled = {{fd, events, 0}};
  return left > Duration(0) && Poll(polled, left) > 0;
}

// The dialling end is done before the other has looked at its certificate. A server that accepts it
// begins to speak at once. Nothing: it did not say by then.
std::optional<std::string> RefusalOfPeer(int fd, TlsSession* session, TimePoint end) {
  std::array<uint8_t, 1> byte{};
  ssize_t got = session->Read(byte);
  while (got < 0 && errno == EAGAIN) {
    if (!Await(fd, POLLIN, end)) return std::nullopt;
    got = session->Read(byte);
  }
  if (got > 0) return "";
  return got == 0 ? "it closes the connection" : TextOf(session->error());
}

}  // namespace

std::optional<v1::HandshakeFacts> CheckHandshake(const std::string& address,
                                                 const std::string& node, TlsContext* tls,
                                                 Duration timeout) {
  v1::HandshakeFacts facts;
  facts.set_node_id(node);
  const TimePoint end = Clock::System().Now() + timeout;
  const absl::StatusOr<HostPort> host_port = ParseHostPort(address);
  if (!host_port.ok()) return facts;
  const absl::StatusOr<UniqueFd> fd = Dialler::Connect(*host_port, end);
  if (!fd.ok()) return facts;  // what the check of ports tells
  const std::unique_ptr<TlsSession> session = tls->DialControl(fd->get(), node);
  absl::StatusOr<bool> done = session->Handshake();
  while (done.ok() && !*done) {
    if (!Await(fd->get(), session->wanted_events(), end)) return std::nullopt;
    done = session->Handshake();
  }
  if (done.ok()) {
    const std::optional<std::string> refusal = RefusalOfPeer(fd->get(), session.get(), end);
    if (!refusal) return std::nullopt;
    facts.set_helper_refuses(*refusal);
  } else if (session->refused_peer()) {
    facts.set_coordinator_refuses(TextOf(done.status()));
  } else if (absl::IsUnavailable(done.status())) {
    facts.set_helper_refuses(TextOf(done.status()));  // its own files may not be usable
  } else {
    facts.set_no_handshake(TextOf(done.status()));
  }
  return facts;
}

void CheckHandshakes(const std::vector<DialTarget>& helpers, Duration timeout,
                     const std::function<bool()>& stop, TlsContext* tls,
                     v1::ExamineClusterResponse* response) {
  std::vector<std::optional<v1::HandshakeFacts>> answers(helpers.size());
  SideBySide(helpers.size(), kHandshakesAtOnce, [&](size_t i) {
    if (stop()) return;
    answers[i] = CheckHandshake(helpers[i].address, helpers[i].node, tls, timeout);
  });
  for (const std::optional<v1::HandshakeFacts>& answer : answers) {
    if (!answer) {
      response->set_handshakes_unknown(response->handshakes_unknown() + 1);
    } else if (!answer->coordinator_refuses().empty() || !answer->helper_refuses().empty() ||
               !answer->no_handshake().empty()) {
      *response->add_handshakes() = *answer;
    }
  }
}

}  // namespace ecpipe
