// SPDX-License-Identifier: Apache-2.0
#include "web/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>

#include "base/process/process_stats.h"
#include "base/process/version.h"

namespace ecpipe {
namespace {

prometheus::ClientMetric ClientMetricOf(const Metrics::Labels& labels) {
  prometheus::ClientMetric metric;
  for (const auto& [name, value] : labels) metric.label.push_back({name, value});
  return metric;
}

prometheus::ClientMetric::Histogram ProtoHistogram(const Histogram& histogram) {
  prometheus::ClientMetric::Histogram result;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    result.sample_count += histogram.counts()[i];
    const bool last = i == histogram.bounds().size();
    result.bucket.push_back({result.sample_count, last ? std::numeric_limits<double>::infinity()
                                                       : histogram.bounds()[i]});
  }
  result.sample_sum = histogram.sum();
  return result;
}

std::function<std::vector<Metrics::Sample>()> One(std::function<double()> read) {
  return [read = std::move(read)] { return std::vector<Metrics::Sample>{{{}, read()}}; };
}

std::function<std::vector<std::vector<Metrics::Sample>>()> OfOneName(
    std::function<std::vector<Metrics::Sample>()> read) {
  return [read = std::move(read)] { return std::vector<std::vector<Metrics::Sample>>{read()}; };
}

}  // namespace

Metrics::Metrics() {
  AddGauges("ecpipe_build_info", "Always 1; the label says which version runs.",
            [] { return std::vector<Sample>{{{{"version", Version()}}, 1}}; });
  AddCounter("process_cpu_seconds_total", "User and system CPU time.", ProcessCpuSeconds);
  AddGauge("process_start_time_seconds", "Unix time at which the process started.",
           ProcessStartUnixSeconds);
  AddGauge("process_resident_memory_bytes", "Memory that is resident now.",
           [] { return static_cast<double>(ResidentBytes()); });
  AddGauge("process_open_fds", "Open file descriptors.",
           [] { return static_cast<double>(OpenDescriptors()); });
  AddGauge("process_max_fds", "The most file descriptors that may be open.",
           [] { return static_cast<double>(DescriptorLimit()); });
}

void Metrics::AddCounter(const std::string& name, const std::string& help,
                         std::function<double()> read) {
  AddCounters(name, help, One(std::move(read)));
}

void Metrics::AddCounters(const std::string& name, const std::string& help,
                          std::function<std::vector<Sample>()> read) {
  MutexLock lock(&mutex_);
  families_.push_back({{{name, help}}, Kind::kCounter, nullptr, OfOneName(std::move(read))});
}

void Metrics::AddGauge(const std::string& name, const std::string& help,
                       std::function<double()> read) {
  AddGauges(name, help, One(std::move(read)));
}

void Metrics::AddGauges(const std::string& name, const std::string& help,
                        std::function<std::vector<Sample>()> read) {
  AddGaugesTogether({{name, help}}, OfOneName(std::move(read)));
}

void Metrics::AddGaugesTogether(std::vector<Name> names,
                                std::function<std::vector<std::vector<Sample>>()> read) {
  MutexLock lock(&mutex_);
  families_.push_back({std::move(names), Kind::kGauge, nullptr, std::move(read)});
}

void Metrics::AddHistograms(const std::string& name, const std::string& help,
                            std::function<std::vector<HistogramSample>()> read) {
  MutexLock lock(&mutex_);
  families_.push_back({{{name, help}}, Kind::kHistogram, std::move(read), nullptr});
}

std::string Metrics::Text() const {
  std::vector<Families> all;
  {
    MutexLock lock(&mutex_);
    all = families_;
  }
  std::vector<prometheus::MetricFamily> answer;
  const auto add = [&answer](const Name& name, prometheus::MetricType type) {
    prometheus::MetricFamily& out = answer.emplace_back();
    out.name = name.name;
    out.help = name.help;
    out.type = type;
    return &out;
  };
  for (const Families& families : all) {
    if (families.kind == Kind::kHistogram) {
      prometheus::MetricFamily* const out =
          add(families.names.at(0), prometheus::MetricType::Histogram);
      for (const HistogramSample& sample : families.histograms()) {
        out->metric.push_back(ClientMetricOf(sample.labels));
        out->metric.back().histogram = ProtoHistogram(sample.histogram);
      }
      continue;
    }
    const bool counts = families.kind == Kind::kCounter;
    const std::vector<std::vector<Sample>> samples = families.samples();
    for (size_t i = 0; i < families.names.size(); ++i) {
      prometheus::MetricFamily* const out =
          add(families.names[i],
              counts ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge);
      for (const Sample& sample : samples.at(i)) {
        out->metric.push_back(ClientMetricOf(sample.labels));
        prometheus::ClientMetric& metric = out->metric.back();
        (counts ? metric.counter.value : metric.gauge.value) = sample.value;
      }
    }
  }
  return prometheus::TextSerializer().Serialize(answer);
}

}  // namespace ecpipe
