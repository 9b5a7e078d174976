// SPDX-License-Identifier: Apache-2.0
#include "requestor/doctor/format_findings.h"

#include <string>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace ecpipe {
namespace {

// "NAME: what, ..., and N others".
std::string MisfitsText(const std::vector<FormatFacts::Misfit>& first, uint64_t count) {
  std::vector<std::string> texts;
  for (const FormatFacts::Misfit& misfit : first) texts.push_back(misfit.name + ": " + misfit.what);
  std::string text = absl::StrJoin(texts, "; ");
  if (count > first.size()) text += absl::StrFormat("; and %d others", count - first.size());
  return text;
}

void JudgeRoot(const NodeFacts& node, const DirectoryFacts& root, CheckReport* report) {
  if (!root.format) {
    report->Add(Severity::kNotChecked, node.node,
                root.path + ": unknown: an older version, which does not look at it",
                "upgrade its helper");
    return;
  }
  const FormatFacts& format = *root.format;
  if (!format.error.empty()) {
    report->Add(Severity::kNotChecked, node.node, root.path + ": " + format.error,
                "mend what is said of it above, then ask again");
  }
  if (!format.wrong.empty()) {
    report->Add(Severity::kError, node.node, root.path + ": " + format.wrong,
                "set [helper] store in its helper.toml to what is there, or roots to the right "
                "directories, then restart it");
  }
  if (format.unreadable_count > 0) {
    report->Add(Severity::kError, node.node,
                absl::StrFormat("%s: of %d headers, and the directories that they lie in, %d "
                                "cannot be read: %s",
                                root.path, format.headers, format.unreadable_count,
                                MisfitsText(format.unreadable, format.unreadable_count)),
                node.store == "plain"
                    ? "repairs leave these blocks out: see whether a newer version has written "
                      "them, and upgrade this helper; else repair the blocks, or remove checksum "
                      "files that do not belong to them"
                    : "repairs leave these blocks out: see whether the helper's user may read "
                      "them, and what the storage system's own check of this node says");
  }
  if (format.foreign_count > 0) {
    report->Add(Severity::kWarning, node.node,
                absl::StrFormat("%s: of %d names %d are none that a store of kind %s has: %s",
                                root.path, format.names, format.foreign_count, node.store,
                                MisfitsText(format.foreign, format.foreign_count)),
                "nothing reads them there: see whether another program uses this directory, and "
                "move them elsewhere");
  }
}

}  // namespace

void JudgeStoreFormat(const DoctorFacts& facts, CheckReport* report) {
  uint64_t roots = 0;
  uint64_t names = 0;
  uint64_t headers = 0;
  bool more = false;
  for (const NodeFacts& node : facts.examination->nodes) {
    if (!node.status.ok()) continue;
    for (const DirectoryFacts& root : node.roots) {
      JudgeRoot(node, root, report);
      ++roots;
      if (!root.format) continue;
      names += root.format->names;
      headers += root.format->headers;
      more = more || root.format->more;
    }
  }
  if (roots == 0) return report->EndUnchecked("no helper was examined");
  report->End(absl::StrFormat(
      "the %d roots have what their kind of store has: %d names were looked at and %d headers "
      "read, which is %s",
      roots, names, headers, more ? "a part of them" : "all of them"));
}

}  // namespace ecpipe
