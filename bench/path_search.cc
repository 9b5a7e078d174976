// SPDX-License-Identifier: Apache-2.0
// Three ways to find the weighted path of §4.3, over the same random links, with the time that a
// search takes and the nodes of its tree:
//
//   path_search [--n=14] [--k=10] [--inputs=100] [--brute-force=3] [--speeds=1000000]
//
// Links have one of so many speeds, each as likely as the others. Brute force looks at every path
// of k helpers, of which (14, 10) has a thousand million, so it has fewer inputs. All must find
// equally fast paths, else the program ends with exit code 1; so it does where n is so large that
// our search is cut off.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "coordinator/planning/path_search.h"

namespace ecpipe {
namespace {

constexpr uint64_t kSeed = 20170712;

struct Options {
  int n = 14;
  int k = 10;
  int inputs = 100;
  int brute_force = 3;
  int speeds = 1'000'000;
};

// What a way to search has found, over all inputs that it was given.
struct Found {
  std::vector<double> speeds;  // of the slowest link of the path of each input
  std::vector<double> ms;      // that the search of each input took
  uint64_t nodes = 0;          // of the search trees, without their leaves
};

// The paper's Algorithm 2: a path grows from the requestor backwards, by links that are faster than
// the slowest link of the best path so far. Without that cut it is brute force.
class PathExtension {
 public:
  enum class Cut { kNone, kSlower };

  PathExtension(const LinkSpeeds& speeds, int length, Cut cut)
      : speeds_(speeds),
        length_(length),
        cut_(cut),
        used_(static_cast<size_t>(speeds.candidates())) {
    Extend(speeds.requestor(), 0, kUnlimited);
  }

  double best() const { return best_; }
  uint64_t nodes() const { return nodes_; }

 private:
  static constexpr double kUnlimited = 1e300;

  void Extend(int beginning, int hops, double slowest) {
    if (hops == length_) {
      best_ = std::max(best_, slowest);
      return;
    }
    ++nodes_;
    for (int node = 0; node < speeds_.candidates(); ++node) {
      if (used_[static_cast<size_t>(node)]) continue;
      const double speed = speeds_.at(node, beginning);
      if (cut_ == Cut::kSlower && speed <= best_) continue;
      used_[static_cast<size_t>(node)] = true;
      Extend(node, hops + 1, std::min(slowest, speed));
      used_[static_cast<size_t>(node)] = false;
    }
  }

  const LinkSpeeds& speeds_;
  int length_;
  Cut cut_;
  std::vector<bool> used_;
  double best_ = 0;
  uint64_t nodes_ = 0;
};

std::vector<LinkSpeeds> RandomInputs(const Options& options) {
  std::mt19937_64 random(kSeed);
  std::vector<LinkSpeeds> inputs;
  for (int i = 0; i < options.inputs; ++i) {
    LinkSpeeds& speeds = inputs.emplace_back(options.n - 1);
    for (int from = 0; from < speeds.candidates(); ++from) {
      for (int to = 0; to <= speeds.candidates(); ++to) {
        speeds.Set(from, to,
                   1 + static_cast<double>(random() % static_cast<uint64_t>(options.speeds)));
      }
    }
  }
  return inputs;
}

template <typename Search>
Found Measure(const std::vector<LinkSpeeds>& inputs, size_t count, const Search& search) {
  Found found;
  for (size_t i = 0; i < count; ++i) {
    const TimePoint start = Clock::System().Now();
    search(inputs[i], &found);
    found.ms.push_back(Seconds(Clock::System().Now() - start) * 1000);
  }
  return found;
}

void Print(const char* way, Found found) {
  const auto count = static_cast<double>(found.ms.size());
  const double mean = std::accumulate(found.ms.begin(), found.ms.end(), 0.0) / count;
  std::sort(found.ms.begin(), found.ms.end());
  std::printf("%-12s  %6zu  %12.4f  %12.4f  %12.4f  %16.0f\n", way, found.ms.size(), mean,
              found.ms[found.ms.size() / 2], found.ms.back(),
              static_cast<double>(found.nodes) / count);
}

// How many of the inputs of `other` have a path that is not as fast as that of `ours`.
size_t Differ(const Found& ours, const Found& other) {
  size_t differ = 0;
  for (size_t i = 0; i < other.speeds.size(); ++i) {
    differ += ours.speeds[i] == other.speeds[i] ? 0 : 1;
  }
  return differ;
}

int Run(const Options& options) {
  const std::vector<LinkSpeeds> inputs = RandomInputs(options);
  const auto extension = [&options](PathExtension::Cut cut) {
    return [&options, cut](const LinkSpeeds& speeds, Found* found) {
      const PathExtension paths(speeds, options.k, cut);
      found->speeds.push_back(paths.best());
      found->nodes += paths.nodes();
    };
  };
  const Found ours = Measure(inputs, inputs.size(), [&](const LinkSpeeds& speeds, Found* found) {
    const WidestPath path = FindWidestPath(speeds, options.k);
    found->speeds.push_back(path.speed);
    found->nodes += path.steps;
  });
  const Found algorithm_2 = Measure(inputs, inputs.size(), extension(PathExtension::Cut::kSlower));
  const size_t few = std::min(inputs.size(), static_cast<size_t>(options.brute_force));
  const Found brute_force = Measure(inputs, few, extension(PathExtension::Cut::kNone));
  std::printf("%-12s  %6s  %12s  %12s  %12s  %16s\n", "search", "inputs", "mean ms", "median ms",
              "most ms", "nodes, mean");
  Print("ours", ours);
  Print("algorithm 2", algorithm_2);
  if (few > 0) Print("brute force", brute_force);
  const size_t differ = Differ(ours, algorithm_2) + Differ(ours, brute_force);
  std::printf("%zu searches found a path of another speed than ours\n", differ);
  return differ == 0 ? 0 : 1;
}

bool Parse(std::string_view word, std::string_view name, int* value) {
  if (!word.starts_with(name)) return false;
  *value = std::atoi(word.substr(name.size()).data());
  return true;
}

}  // namespace
}  // namespace ecpipe

int main(int argc, char** argv) {
  constexpr char kUsage[] =
      "usage: path_search [--n=14] [--k=10] [--inputs=100] [--brute-force=3] [--speeds=1000000]\n";
  ecpipe::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (ecpipe::Parse(word, "--n=", &options.n) || ecpipe::Parse(word, "--k=", &options.k) ||
        ecpipe::Parse(word, "--inputs=", &options.inputs) ||
        ecpipe::Parse(word, "--brute-force=", &options.brute_force) ||
        ecpipe::Parse(word, "--speeds=", &options.speeds)) {
      continue;
    }
    if (word == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    std::fprintf(stderr, "path_search: unknown argument %s\n%s", argv[i], kUsage);
    return 2;
  }
  if (options.k < 1 || options.n <= options.k || options.n > 256 || options.inputs < 1 ||
      options.brute_force < 0 || options.speeds < 1) {
    std::fprintf(stderr, "path_search: 1 <= k < n <= 256; at least one input and one speed\n");
    return 2;
  }
  return ecpipe::Run(options);
}
