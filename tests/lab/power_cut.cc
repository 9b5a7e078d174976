// SPDX-License-Identifier: Apache-2.0
// Writes what daemons keep on a disk, until that disk is cut off, and says afterwards whether all
// is there that was acknowledged. power_cut_test.py does the cutting.
//
//   power_cut write DIRECTORY [PART=STEP ...]   goes on after these steps; "PART STEP" on standard
//                                               output: that step is acknowledged; "failed PART:
//                                               REASON": the part has ended
//   power_cut check DIRECTORY [PART=STEP-LATER ...]
//                                               opens all, and compares: at least the first STEP
//                                               steps must be there, at most LATER and those that
//                                               may have been under way after it. "PART STEP": that
//                                               is the last one there
//
// check ends with 1 if anything is missing, and then says what.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "power_cut_parts.h"

namespace ecpipe {
namespace {

struct LastStep {
  uint64_t at_least = 0;
  uint64_t acknowledged = 0;
};
using Steps = std::map<std::string, LastStep>;  // by part

// In one piece: threads share standard output.
void Say(const std::string& text) {
  const std::string line = text + "\n";
  if (::write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    std::_Exit(2);  // nobody listens any more
  }
}

void WriteUntilItFails(PowerCutPart* part, uint64_t last) {
  for (uint64_t number = last + 1;; ++number) {
    const absl::Status done = part->Step(number);
    if (!done.ok()) {
      Say("failed " + part->name() + ": step " + std::to_string(number) + ": " + StatusText(done));
      return;
    }
    if (part->Acknowledges(number)) Say(part->name() + " " + std::to_string(number));
  }
}

int Write(const std::string& directory, Steps last) {
  std::vector<std::unique_ptr<PowerCutPart>> parts = PowerCutParts();
  for (const auto& part : parts) {
    if (const absl::Status opened = part->Open(directory); !opened.ok()) {
      Say("failed " + part->name() + ": " + StatusText(opened));
      return 1;
    }
  }
  std::vector<Thread> threads;
  for (const auto& part : parts) {
    threads.emplace_back(
        [&part, from = last[part->name()].at_least] { WriteUntilItFails(part.get(), from); });
  }
  for (Thread& thread : threads) thread.join();
  return 1;
}

std::string FirstDifference(const Stored& expected, const Stored& found) {
  const auto text = [](const Stored& stored, const std::string& name) {
    const auto at = stored.find(name);
    return at == stored.end() ? "missing" : "\"" + at->second + "\"";
  };
  Stored all = expected;
  all.insert(found.begin(), found.end());
  for (const auto& [name, _] : all) {
    if (text(expected, name) != text(found, name)) {
      return name + " is " + text(found, name) + ", not " + text(expected, name);
    }
  }
  return "";
}

// The last step that is there.
absl::StatusOr<uint64_t> Check(PowerCutPart* part, const std::string& directory,
                               const LastStep& last) {
  ECPIPE_RETURN_IF_ERROR(Annotate(part->Open(directory), "open"));
  ECPIPE_ASSIGN_OR_RETURN(const Stored found, part->Read());
  Stored expected;
  for (uint64_t number = 1; number <= last.at_least; ++number) part->Expect(number, &expected);
  const std::string difference = FirstDifference(expected, found);
  const uint64_t most = last.acknowledged + part->in_flight();
  for (uint64_t number = last.at_least; number <= most; ++number) {
    if (number > last.at_least) part->Expect(number, &expected);
    if (expected == found) return number;
  }
  return absl::DataLossError("it is as after none of the steps " + std::to_string(last.at_least) +
                             " to " + std::to_string(most) + ": " + difference);
}

int CheckAll(const std::string& directory, Steps last) {
  int code = 0;
  for (const auto& part : PowerCutParts()) {
    const absl::StatusOr<uint64_t> there = Check(part.get(), directory, last[part->name()]);
    if (!there.ok()) code = 1;
    Say(there.ok() ? part->name() + " " + std::to_string(*there)
                   : "failed " + part->name() + ": " + StatusText(there.status()));
  }
  return code;
}

int Main(int count, char** words) {
  const std::string command = count > 2 ? words[1] : "";
  Steps last;
  for (int i = 3; i < count; ++i) {
    const std::string word = words[i];
    const size_t equals = word.find('=');
    LastStep& step = last[word.substr(0, equals)];
    char* rest = nullptr;
    step.at_least = std::strtoull(word.c_str() + equals + 1, &rest, 10);
    step.acknowledged = *rest == '-' ? std::strtoull(rest + 1, nullptr, 10) : step.at_least;
  }
  if (command == "write") return Write(words[2], last);
  if (command == "check") return CheckAll(words[2], last);
  std::fprintf(stderr, "power_cut: write or check, and a directory\n");
  return 2;
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) { return ecpipe::Main(argc, argv); }
