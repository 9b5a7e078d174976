// SPDX-License-Identifier: Apache-2.0
// The NameNode's block groups, by its fsck.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "coordinator/sources/group_table.h"
#include "coordinator/sources/namenode_answers.h"

namespace ecpipe {

// The section [hdfs] of the coordinator's configuration.
struct NameNodeOptions {
  // "http://HOST:PORT" of each NameNode of one HDFS with high availability; empty: none is
  // configured.
  std::vector<std::string> urls;
  std::string user;        // a superuser of HDFS, as fsck wants it
  std::string path = "/";  // only groups of files below it are known
  Duration refresh = std::chrono::seconds(300);
};

// Asks the NameNodes in turn, by fsck over HTTP; the first complete answer counts (a NameNode in
// standby refuses). `stop`: as in HttpGetOptions.
absl::StatusOr<GroupTable> FetchGroups(const NameNodeOptions& options,
                                       const std::function<bool()>& stop);

using KnownGroups = KnownAnswer<GroupTable>;
using NameNodeGroups = NameNodeAnswers<GroupTable>;

}  // namespace ecpipe
