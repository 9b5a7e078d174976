// SPDX-License-Identifier: Apache-2.0
#include "coordinator/cluster/topology.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <sstream>
#include <vector>

#include "base/bytes/utf8_text.h"
#include "base/file_io.h"
#include "base/status.h"

namespace ecpipe {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;

absl::Status BadLine(const std::string& source, size_t line, const std::string& what) {
  return absl::InvalidArgumentError(source + ":" + std::to_string(line) + ": " + what);
}

// Calls `take` with the words of each line that says something.
absl::Status ForEachEntry(
    const std::string& text, const std::string& source, size_t word_count, const char* form,
    const std::function<absl::Status(const std::vector<std::string>& words)>& take) {
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    if (++number > kMaxTopologyLines) {
      return BadLine(
          source, number,
          "the file has more than the limit of " + std::to_string(kMaxTopologyLines) + " lines");
    }
    std::istringstream in(line);
    std::vector<std::string> words;
    for (std::string word; in >> word && word[0] != '#';) words.push_back(word);
    if (words.empty()) continue;
    // Racks and nodes stand in answers to clients, which carry UTF-8 and nothing else.
    if (!std::all_of(words.begin(), words.end(), IsCleanText)) {
      return BadLine(source, number, "a word is not printable UTF-8 text");
    }
    if (words.size() != word_count) {
      return BadLine(source, number, std::string("the line is not of the form '") + form + "'");
    }
    if (absl::Status taken = take(words); !taken.ok()) {
      return BadLine(source, number, std::string(taken.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<double> BytesPerSecond(const std::string& megabits) {
  double value = 0;
  const char* end = megabits.data() + megabits.size();
  const auto [rest, error] = std::from_chars(megabits.data(), end, value);
  // Comparisons with a NaN are false.
  const bool in_range = value >= kLeastLinkMbit && value <= kMostLinkMbit;
  if (error != std::errc() || rest != end || !in_range) {
    return absl::InvalidArgumentError("'" + megabits +
                                      "' is not a number of Mb/s from 0.001 to 1e9");
  }
  return value * 1e6 / 8;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenForReading(path));
  ECPIPE_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(fd.get()));
  if (bytes > kMaxFileBytes) {
    return absl::InvalidArgumentError(path + " has " + std::to_string(bytes) +
                                      " bytes; the limit is " + std::to_string(kMaxFileBytes));
  }
  std::string text(bytes, '\0');
  ECPIPE_RETURN_IF_ERROR(
      ReadFully(fd.get(), 0, {reinterpret_cast<uint8_t*>(text.data()), text.size()}));
  return text;
}

}  // namespace

absl::StatusOr<RackTable> ParseRackTable(const std::string& text, const std::string& source) {
  RackTable racks;
  ECPIPE_RETURN_IF_ERROR(ForEachEntry(
      text, source, 2, "NODE RACK", [&](const std::vector<std::string>& words) -> absl::Status {
        if (racks.try_emplace(words[0], words[1]).second) return absl::OkStatus();
        return absl::InvalidArgumentError(words[0] + " already has a rack in an earlier line");
      }));
  return racks;
}

absl::StatusOr<LinkTable> ParseLinkTable(const std::string& text, const std::string& source) {
  LinkTable links;
  ECPIPE_RETURN_IF_ERROR(ForEachEntry(
      text, source, 3, "FROM TO MBIT", [&](const std::vector<std::string>& words) -> absl::Status {
        ECPIPE_ASSIGN_OR_RETURN(const double speed, BytesPerSecond(words[2]));
        if (links.try_emplace({words[0], words[1]}, speed).second) return absl::OkStatus();
        return absl::InvalidArgumentError("the link from " + words[0] + " to " + words[1] +
                                          " is already in an earlier line");
      }));
  return links;
}

absl::StatusOr<RackTable> ReadRackTable(const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseRackTable(text, path);
}

absl::StatusOr<LinkTable> ReadLinkTable(const std::string& path) {
  ECPIPE_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseLinkTable(text, path);
}

}  // namespace ecpipe
