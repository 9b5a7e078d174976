// SPDX-License-Identifier: Apache-2.0
#include "requestor/upkeep/watch_screen.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/bytes/size_text.h"
#include "base/bytes/utf8_text.h"
#include "requestor/cli/progress_text.h"
#include "requestor/doctor/node_troubles.h"

namespace ecpipe {
namespace {

// A screen that is smaller shows the beginning of this.
constexpr size_t kLeastRows = 12;

using Lines = std::vector<std::string>;

std::string Counts(const std::map<std::string, size_t>& by_state) {
  std::string text;
  for (const auto& [state, count] : by_state) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + state;
  }
  return text.empty() ? "none" : text;
}

Lines HeadOf(const WatchFrame& frame, const OutputStyle& style) {
  std::map<std::string, size_t> nodes;
  for (const NodeStatus& node : frame.status.nodes) ++nodes[ShownState(node)];
  const auto fit = [&](const std::string& line) {
    return style.columns == 0 ? line : FitText(line, style.columns);
  };
  Lines lines;
  const std::string& version = frame.status.version;
  lines.push_back(fit(absl::StrFormat("%s  coordinator %s%s%s", frame.time, frame.coordinator,
                                      version.empty() ? "" : ", ecpipe ", version)));
  if (frame.answered) {
    lines.push_back(
        fit(absl::StrFormat("nodes: %s; stripes: %d; corrupt or suspect blocks: %d", Counts(nodes),
                            frame.status.stripe_count, frame.status.corrupt_blocks.size())));
  }
  if (!frame.error.empty()) {
    lines.push_back(Tinted(fit("not newer: " + CleanText(frame.error)), Tint::kBad, style));
  }
  return lines;
}

Lines TroublesOfAll(const ClusterStatus& status, const OutputStyle& style) {
  Lines lines;
  for (const NodeStatus& node : status.nodes) {
    for (const std::string& trouble : TroublesOf(node, /*hdfs=*/false)) {
      const std::string line = CleanText(node.node + ": " + trouble);
      lines.push_back(
          Tinted(style.columns == 0 ? line : FitText(line, style.columns), Tint::kBad, style));
    }
  }
  return lines;
}

Lines RecoveriesOf(const std::vector<RecoveryView>& recoveries, const OutputStyle& style) {
  using Align = Table::Align;
  Table table({{"recovery", Align::kRight},
               {"of node", Align::kLeft, /*shrinks=*/true},
               {"state"},
               {"blocks", Align::kRight},
               {"running", Align::kRight, false, 3},
               {"rate", Align::kRight, false, 2},
               {"left", Align::kRight},
               {"waits for", Align::kLeft, /*shrinks=*/true, 1}});
  for (const RecoveryView& recovery : recoveries) {
    const RecoveryRecord& record = recovery.record;
    if (Ended(record.state)) continue;
    std::optional<double> left;
    if (recovery.eta_seconds >= 0) left = recovery.eta_seconds;
    if (InMaintenance(record)) left = recovery.begins_in_seconds;
    table.Add(
        {{std::to_string(record.recovery_id)},
         {record.request.node},
         {InMaintenance(record) ? "maintenance" : RecoveryStateName(record.state), Tint::kBusy},
         {absl::StrFormat("%d of %d", record.done_blocks, record.blocks)},
         {std::to_string(recovery.running_blocks)},
         {FormatSize(static_cast<uint64_t>(recovery.bytes_per_second)) + "/s"},
         {DurationText(left)},
         {recovery.waits.empty() ? "" : recovery.waits.front().reason}});
  }
  return table.empty() ? Lines() : table.Lines(style);
}

// The first lines; the last of them counts the others.
void CutTo(size_t most, const OutputStyle& style, Lines* lines) {
  if (lines->size() <= most) return;
  if (most == 0) return lines->clear();
  const size_t hidden = lines->size() - most + 1;
  lines->resize(most - 1);
  lines->push_back(Tinted(absl::StrFormat("... and %d more", hidden), Tint::kFaint, style));
}

// Each section may have its share, and what the others leave; the last one what is left in the end.
void Share(size_t rows, const OutputStyle& style, std::vector<Lines>* sections) {
  size_t needed = 0;
  for (const Lines& section : *sections) needed += section.size() + 1;
  for (size_t i = 0; i < sections->size(); ++i) {
    Lines& section = (*sections)[i];
    const size_t others = needed - section.size() - 1;
    const size_t share = rows / (sections->size() - i);
    const size_t most = std::max(rows > others ? rows - others : 0, share);
    needed = others;
    CutTo(most > 0 ? most - 1 : 0, style, &section);
    rows -= std::min(rows, section.size() + 1);
  }
}

}  // namespace

std::string WatchScreen(WatchFrame frame, const SortOrder& order, const OutputStyle& style,
                        size_t rows) {
  SortNodes(order, frame.uses, &frame.status.nodes);
  SortRepairs({}, frame.now_unix_ms, &frame.status.repairs);
  const Lines head = HeadOf(frame, style);
  std::vector<Lines> sections;
  const auto add = [&](Lines lines) {
    if (!lines.empty()) sections.push_back(std::move(lines));
  };
  add(TroublesOfAll(frame.status, style));
  add(RecoveriesOf(frame.recoveries, style));
  if (!frame.status.repairs.empty()) {
    add(RepairsTable(frame.status.repairs, frame.now_unix_ms).Lines(style));
  }
  if (frame.answered) add(NodesTable(frame.status.nodes, frame.uses).Lines(style));
  if (rows > 0) {
    rows = std::max(rows, kLeastRows);
    Share(rows - head.size(), style, &sections);
  }
  std::string text;
  for (const std::string& line : head) text += line + "\n";
  for (const Lines& section : sections) {
    text += "\n";
    for (const std::string& line : section) text += line + "\n";
  }
  return text;
}

}  // namespace ecpipe
