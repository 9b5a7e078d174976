// SPDX-License-Identifier: Apache-2.0
#include "base/process/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <exception>
#include <vector>

#include "base/mutex.h"

namespace ecpipe {
namespace {

struct Entry {
  std::string name;
  std::string help;
  prometheus::MetricType type;
  std::function<double()> read;
};

class Collector : public prometheus::Collectable {
 public:
  void Add(Entry entry) {
    MutexLock lock(&mutex_);
    entries_.push_back(std::move(entry));
  }

  std::vector<prometheus::MetricFamily> Collect() const override {
    MutexLock lock(&mutex_);
    std::vector<prometheus::MetricFamily> families;
    for (const Entry& entry : entries_) {
      prometheus::MetricFamily family;
      family.name = entry.name;
      family.help = entry.help;
      family.type = entry.type;
      prometheus::ClientMetric& metric = family.metric.emplace_back();
      if (entry.type == prometheus::MetricType::Counter) {
        metric.counter.value = entry.read();
      } else {
        metric.gauge.value = entry.read();
      }
      families.push_back(std::move(family));
    }
    return families;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct MetricsServer::State {
  std::shared_ptr<Collector> collector =
      std::make_shared<Collector>();  // the exposer wants a weak_ptr
  std::unique_ptr<prometheus::Exposer> exposer;
};

MetricsServer::MetricsServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
MetricsServer::~MetricsServer() = default;

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address) {
  auto state = std::make_unique<State>();
  try {
    state->exposer = std::make_unique<prometheus::Exposer>(address, 1);
  } catch (const std::exception& failure) {
    return absl::UnavailableError("serve metrics on " + address + ": " + failure.what());
  }
  state->exposer->RegisterCollectable(state->collector);
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(state)));
}

void MetricsServer::AddCounter(const std::string& name, const std::string& help,
                               std::function<double()> read) {
  state_->collector->Add({name, help, prometheus::MetricType::Counter, std::move(read)});
}

void MetricsServer::AddGauge(const std::string& name, const std::string& help,
                             std::function<double()> read) {
  state_->collector->Add({name, help, prometheus::MetricType::Gauge, std::move(read)});
}

}  // namespace ecpipe
