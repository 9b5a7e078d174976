// SPDX-License-Identifier: Apache-2.0
// ecpipe_sim: runs seeds of the simulation and says which of them break an invariant.
//
//   ecpipe_sim --seeds 1..10000      runs them, prints those that fail; exit code 1 if any does
//   ecpipe_sim --seeds 42 --trace    runs one again, with everything that happens
//   ecpipe_sim --seeds 1..500 --find-failure    stops at the first that fails; exit code 0 if one
//                                               does: for a build with a bug to be found
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/process/log.h"
#include "sim/world.h"

namespace ecpipe::sim {
namespace {

// Longer than any seed takes, even with sanitizers on a busy machine.
constexpr unsigned kSecondsOfASeed = 120;

char running_text[64] = "";
int error_fd = STDERR_FILENO;

struct Arguments {
  uint64_t first = 1;
  uint64_t last = 100;
  bool trace = false;
  bool find_failure = false;
};

// A failed check, a crash or a hang is a seed's failure, too: says which one, and ends.
void OnSignal(int signal) {
  const char* const text = signal == SIGALRM ? "hangs: seed " : "dies: seed ";
  [[maybe_unused]] ssize_t written = ::write(error_fd, text, std::strlen(text));
  written = ::write(error_fd, running_text, std::strlen(running_text));
  ::signal(signal, SIG_DFL);
  ::raise(signal == SIGALRM ? SIGABRT : signal);
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && rest == text.data() + text.size();
}

bool ParseSeeds(std::string_view text, Arguments* arguments) {
  const size_t dots = text.find("..");
  if (!ParseNumber(text.substr(0, dots), &arguments->first)) return false;
  arguments->last = arguments->first;
  return dots == std::string_view::npos || ParseNumber(text.substr(dots + 2), &arguments->last);
}

bool Parse(int count, char** values, Arguments* arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view name = values[i];
    if (name == "--trace") {
      arguments->trace = true;
    } else if (name == "--find-failure") {
      arguments->find_failure = true;
    } else if (name != "--seeds" || ++i == count || !ParseSeeds(values[i], arguments)) {
      return false;
    }
  }
  return true;
}

struct Totals {
  uint64_t seeds = 0;
  uint64_t failed = 0;
  uint64_t steps = 0;
  uint64_t operations = 0;
  uint64_t succeeded = 0;
  uint64_t recoveries = 0;
  uint64_t fingerprint = 0;  // of all seeds
  double virtual_seconds = 0;
};

// Whether the seed kept every invariant.
bool RunOne(uint64_t seed, const Arguments& arguments, Totals* totals) {
  std::snprintf(running_text, sizeof running_text, "%llu\n", static_cast<unsigned long long>(seed));
  ::alarm(kSecondsOfASeed);
  RunOptions options;
  if (arguments.trace) {
    options.trace = [](TimePoint now, const std::string& text) {
      std::printf("%12.6f %s\n", Seconds(now.time_since_epoch()) - 3600.0 * 1000, text.c_str());
    };
  }
  const Outcome outcome = RunSeed(seed, options);
  ++totals->seeds;
  totals->steps += outcome.steps;
  totals->fingerprint = totals->fingerprint * 31 + outcome.fingerprint;
  totals->operations += static_cast<uint64_t>(outcome.operations);
  totals->succeeded += static_cast<uint64_t>(outcome.succeeded);
  totals->recoveries += static_cast<uint64_t>(outcome.recoveries);
  totals->virtual_seconds += outcome.virtual_seconds;
  if (outcome.violations.empty()) return true;
  ++totals->failed;
  std::printf("seed %llu FAILED (%s)\n", static_cast<unsigned long long>(seed),
              outcome.scenario.c_str());
  for (const std::string& violation : outcome.violations) std::printf("  %s\n", violation.c_str());
  return false;
}

// The daemons' logs are of use in a trace only.
void SilenceLogs() {
  error_fd = ::dup(STDERR_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  ::close(nowhere);
}

int Main(const Arguments& arguments) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGALRM}) ::signal(signal, OnSignal);
  SetLog({.least_level = arguments.trace ? LogLevel::kInfo : LogLevel::kError});
  if (!arguments.trace) SilenceLogs();
  ::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto begun = std::chrono::steady_clock::now();
  Totals totals;
  for (uint64_t seed = arguments.first; seed <= arguments.last; ++seed) {
    if (!RunOne(seed, arguments, &totals) && arguments.find_failure) break;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf(
      "%llu seeds, %llu failed; %llu operations (%llu succeeded), %llu recoveries, %llu steps, "
      "%.0f h of virtual time in %.1f s, fingerprint %016llx\n",
      static_cast<unsigned long long>(totals.seeds), static_cast<unsigned long long>(totals.failed),
      static_cast<unsigned long long>(totals.operations),
      static_cast<unsigned long long>(totals.succeeded),
      static_cast<unsigned long long>(totals.recoveries),
      static_cast<unsigned long long>(totals.steps), totals.virtual_seconds / 3600, seconds,
      static_cast<unsigned long long>(totals.fingerprint));
  const bool good = (totals.failed > 0) == arguments.find_failure;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace ecpipe::sim

int main(int argc, char** argv) {
  ecpipe::sim::Arguments arguments;
  if (!ecpipe::sim::Parse(argc, argv, &arguments)) {
    const bool asked = argc == 2 && std::string_view(argv[1]) == "--help";
    std::fprintf(asked ? stdout : stderr,
                 "usage: %s --seeds A[..B] [--trace] [--find-failure]\n\n"
                 "  --seeds A[..B]   run the scenarios of these seeds\n"
                 "  --trace          print what happens, and the daemons' logs\n"
                 "  --find-failure   stop at the first seed that fails; exit 0 if there is one\n",
                 argv[0]);
    return asked ? 0 : 2;
  }
  return ecpipe::sim::Main(arguments);
}
