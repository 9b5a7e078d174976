// SPDX-License-Identifier: Apache-2.0
// Racks and link speeds from files that an operator has written. They go before what nodes say of
// themselves.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "coordinator/cluster/cluster_view.h"

namespace ecpipe {

// By node id or host name.
using RackTable = std::map<std::string, std::string>;

// Both files hold one entry a line, words apart by blanks; empty lines and lines that begin with
// '#' say nothing. `source` names the file in messages. INVALID_ARGUMENT with source:line for a
// line of another form or of other than printable UTF-8, an entry that comes twice, or a file of
// more than kMaxTopologyLines.
inline constexpr size_t kMaxTopologyLines = 2'000'000;

// "NODE RACK", as Hadoop's TableMapping reads it: a node id or a host, and a rack such as
// /hall-1/rack-7.
absl::StatusOr<RackTable> ParseRackTable(const std::string& text, const std::string& source);

// "FROM TO MBIT": megabits per second from one node, or one rack, to another. Names that begin with
// '/' are racks. A speed outside these bounds is a mistake, and would make times infinite or 0.
inline constexpr double kLeastLinkMbit = 0.001;
inline constexpr double kMostLinkMbit = 1e9;
absl::StatusOr<LinkTable> ParseLinkTable(const std::string& text, const std::string& source);

// The same from files. NOT_FOUND and other errors of the file system name the path.
absl::StatusOr<RackTable> ReadRackTable(const std::string& path);
absl::StatusOr<LinkTable> ReadLinkTable(const std::string& path);

}  // namespace ecpipe
