// SPDX-License-Identifier: Apache-2.0
// Short texts that come from people and peers: ids, sizes, addresses, fault points, messages.
#include <string>

#include "base/bytes/size_text.h"
#include "base/bytes/utf8_text.h"
#include "base/check.h"
#include "base/fault_points.h"
#include "base/status.h"
#include "ecpipe/v1/coordinator.pb.h"
#include "model/block_id.h"
#include "net/tcp_socket.h"

namespace ecpipe {
namespace {

void CheckId(const std::string& text) {
  if (!ValidateBlockId(text).ok()) return;
  // What it promises: a file name and nothing else.
  ECPIPE_CHECK(!text.empty() && text.size() <= 255 && text.front() != '.');
  ECPIPE_CHECK(text.find('/') == std::string::npos && text.find('\0') == std::string::npos);
  ECPIPE_CHECK(IsCleanText(text));
}

void CheckSize(const std::string& text) {
  const absl::StatusOr<uint64_t> bytes = ParseSize(text);
  ECPIPE_CHECK(bytes.ok() || absl::IsInvalidArgument(bytes.status()));
  if (!bytes.ok()) return;
  const absl::StatusOr<uint64_t> again = ParseSize(std::to_string(*bytes));
  ECPIPE_CHECK(again.ok() && *again == *bytes);
  ECPIPE_CHECK(!FormatSize(*bytes).empty());
}

void CheckAddress(const std::string& text) {
  const absl::StatusOr<HostPort> address = ParseHostPort(text);
  ECPIPE_CHECK(address.ok() || absl::IsInvalidArgument(address.status()));
  if (!address.ok()) return;
  ECPIPE_CHECK(address->port >= 0 && address->port <= 65535 && !address->host.empty());
  // The resolver takes a C string: a host that ends early there would be another host.
  ECPIPE_CHECK(address->host.find('\0') == std::string::npos);
  const absl::StatusOr<HostPort> again = ParseHostPort(FormatHostPort(*address));
  ECPIPE_CHECK(again.ok() && again->host == address->host && again->port == address->port);
}

void CheckFaults(const std::string& text) {
  const absl::Status armed = ArmFaultsFromText(text);
  DisarmAllFaults();
  ECPIPE_CHECK(armed.ok() || absl::IsInvalidArgument(armed));
  ECPIPE_CHECK(FaultPoint("fuzz").ok());
}

// What cleaning and cutting leave, a proto carries, and with it every report.
void CheckMessage(const std::string& text) {
  const std::string clean = CleanText(text);
  ECPIPE_CHECK(IsCleanText(clean) && clean.size() <= text.size());
  ECPIPE_CHECK(!IsCleanText(text) || clean == text);
  v1::ReportPartRequest report;
  report.set_status_message(clean);
  ECPIPE_CHECK(v1::ReportPartRequest().ParseFromString(report.SerializeAsString()));
  const std::string_view cut = CutText(clean, clean.size() / 2);
  ECPIPE_CHECK(cut.size() <= clean.size() / 2 && cut.size() + 4 > clean.size() / 2);
  ECPIPE_CHECK(IsCleanText(cut) && clean.starts_with(cut));
}

}  // namespace
}  // namespace ecpipe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  ecpipe::CheckId(text);
  ecpipe::CheckSize(text);
  ecpipe::CheckAddress(text);
  ecpipe::CheckFaults(text);
  ecpipe::CheckMessage(text);
  return 0;
}
