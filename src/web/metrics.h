// SPDX-License-Identifier: Apache-2.0
// The metrics of one daemon, in Prometheus' text format. Names carry their unit, e.g.
// ecpipe_data_sent_bytes_total. Labels have few values, of which a node is one
// only for itself or while it is away: never a repair, a block or a link.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"

namespace ecpipe {

// Thread-safe.
class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  struct Sample {
    Labels labels;
    double value = 0;
  };
  struct HistogramSample {
    Labels labels;
    Histogram histogram;
  };

  // Every daemon has what tells of the process itself: version, start, CPU, memory, descriptors.
  Metrics();

  // `read` gives the values when they are scraped. It is called from the web server's threads, and
  // must stay valid until that server has stopped.
  void AddCounter(const std::string& name, const std::string& help, std::function<double()> read);
  void AddCounters(const std::string& name, const std::string& help,
                   std::function<std::vector<Sample>()> read);
  void AddGauge(const std::string& name, const std::string& help, std::function<double()> read);
  void AddGauges(const std::string& name, const std::string& help,
                 std::function<std::vector<Sample>()> read);
  // Gauges that are read together, once a scrape: `read` returns the samples of each, in order.
  struct Name {
    std::string name;
    std::string help;
  };
  void AddGaugesTogether(std::vector<Name> names,
                         std::function<std::vector<std::vector<Sample>>()> read);
  void AddHistograms(const std::string& name, const std::string& help,
                     std::function<std::vector<HistogramSample>()> read);

  std::string Text() const;

 private:
  enum class Kind { kCounter, kGauge, kHistogram };
  struct Families {
    std::vector<Name> names;
    Kind kind;
    std::function<std::vector<HistogramSample>()> histograms;   // of the kind histogram; of one
    std::function<std::vector<std::vector<Sample>>()> samples;  // of the others
  };

  mutable Mutex mutex_;
  std::vector<Families> families_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace ecpipe
