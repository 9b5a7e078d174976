// SPDX-License-Identifier: Apache-2.0
#include "web/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ecpipe::metrics_test {
namespace {

using testing::HasSubstr;

TEST(MetricsTest, ProcessTellsOfItself) {
  const std::string text = Metrics().Text();
  for (const char* name :
       {"ecpipe_build_info{version=\"", "process_cpu_seconds_total ", "process_max_fds ",
        "process_open_fds ", "process_resident_memory_bytes ", "process_start_time_seconds "}) {
    EXPECT_THAT(text, HasSubstr(name));
  }
}

TEST(MetricsTest, StartOfTheProcessIsInThePast) {
  const std::string text = Metrics().Text();
  const std::string name = "\nprocess_start_time_seconds ";
  const double start = std::stod(text.substr(text.find(name) + name.size()));
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(start, now + 1);
  EXPECT_GT(start, now - 600);
}

TEST(MetricsTest, LabelledValuesAreReadWhenScraped) {
  Metrics metrics;
  double nodes = 2;
  metrics.AddGauges("nodes", "Nodes.", [&] {
    return std::vector<Metrics::Sample>{{{{"state", "live"}}, nodes}, {{{"state", "a\"b\n"}}, 0}};
  });
  EXPECT_THAT(metrics.Text(), HasSubstr("# TYPE nodes gauge\nnodes{state=\"live\"} 2\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("nodes{state=\"a\\\"b\\n\"} 0\n"));
  nodes = 3;
  EXPECT_THAT(metrics.Text(), HasSubstr("nodes{state=\"live\"} 3\n"));
}

TEST(MetricsTest, HistogramBucketsAreCumulative) {
  Histogram histogram({0.1, 1});
  for (const double value : {0.05, 0.1, 0.5, 7.0}) histogram.Add(value);
  Metrics metrics;
  metrics.AddHistograms("wait_seconds", "Waits.", [&] {
    return std::vector<Metrics::HistogramSample>{{{{"work", "read"}}, histogram}};
  });
  EXPECT_THAT(metrics.Text(), HasSubstr("# TYPE wait_seconds histogram\n"
                                        "wait_seconds_count{work=\"read\"} 4\n"
                                        "wait_seconds_sum{work=\"read\"} 7.65\n"
                                        "wait_seconds_bucket{work=\"read\",le=\"0.1\"} 2\n"
                                        "wait_seconds_bucket{work=\"read\",le=\"1\"} 3\n"
                                        "wait_seconds_bucket{work=\"read\",le=\"+Inf\"} 4\n"));
}

}  // namespace
}  // namespace ecpipe::metrics_test
