// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/namenode_groups.h"

#include "base/status.h"
#include "coordinator/sources/fsck_parser.h"
#include "coordinator/sources/http_get.h"

namespace ecpipe {

namespace {

absl::StatusOr<GroupTable> FetchFrom(const std::string& server, const NameNodeOptions& options,
                                     const std::function<bool()>& stop) {
  // fsck looks whether a key is there and not at its value: "locations=0" would ask for locations.
  const std::string url = server + "/fsck?ugi=" + EscapedForUrl(options.user) +
                          "&files=1&blocks=1&openforwrite=1&path=" + EscapedForUrl(options.path);
  FsckParser parser;
  HttpGetOptions http;
  http.stop = stop;
  ECPIPE_RETURN_IF_ERROR(
      HttpGet(url, http, [&](std::string_view text) { return parser.Add(text); }));
  absl::StatusOr<GroupTable> groups = parser.Finish();
  if (!groups.ok()) return Annotate(groups.status(), server);
  return groups;
}

}  // namespace

absl::StatusOr<GroupTable> FetchGroups(const NameNodeOptions& options,
                                       const std::function<bool()>& stop) {
  return AskInTurn<GroupTable>(options.urls, [&](const std::string& server) {
    return FetchFrom(server, options, stop);
  });
}

}  // namespace ecpipe
