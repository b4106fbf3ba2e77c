// SPDX-License-Identifier: Apache-2.0
// Metrics for a program that serves its own by prometheus-cpp: tenure's stand beside them.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <tenure/metrics.hpp>
#include <tenure/prometheus.hpp>

namespace tenure::prometheus {

/// Give it to an Exposer (RegisterCollectable), or ask it yourself. Its names, labels and values are those of
/// to_text().
class Collectable final : public ::prometheus::Collectable {
 public:
  /// `told` is asked at each scrape, on the thread of the Exposer:
  ///   [&manager] { return tenure::prometheus::families({manager.metrics()}); }
  /// Throws std::invalid_argument if it is empty. REQUIRES: what it refers to outlives the Exposer.
  explicit Collectable(std::function<std::vector<Family>()> told) : told_(std::move(told)) {
    if (!told_) throw std::invalid_argument("tenure::prometheus::Collectable: the function is missing");
  }

  std::vector<::prometheus::MetricFamily> Collect() const override {
    std::vector<::prometheus::MetricFamily> out;
    for (auto& family : told_()) {
      auto& to = out.emplace_back();
      to.name = std::move(family.name);
      to.help = std::move(family.help);
      to.type = type_of(family.type);
      for (const auto& sample : family.samples) to.metric.push_back(metric_of(family.type, sample));
    }
    return out;
  }

 private:
  using Metric = ::prometheus::ClientMetric;

  static ::prometheus::MetricType type_of(Family::Type type) {
    return type == Family::Type::gauge     ? ::prometheus::MetricType::Gauge
           : type == Family::Type::counter ? ::prometheus::MetricType::Counter
                                           : ::prometheus::MetricType::Histogram;
  }

  static Metric metric_of(Family::Type type, const Sample& sample) {
    Metric out;
    for (const auto& [name, value] : sample.labels) out.label.push_back({name, value});
    if (const auto* histogram = std::get_if<Histogram>(&sample.value)) {
      out.histogram = histogram_of(*histogram);
    } else {
      const auto* whole = std::get_if<std::uint64_t>(&sample.value);
      const auto value = whole ? static_cast<double>(*whole) : std::get<double>(sample.value);
      (type == Family::Type::counter ? out.counter.value : out.gauge.value) = value;
    }
    return out;
  }

  static Metric::Histogram histogram_of(const Histogram& histogram) {
    Metric::Histogram out;
    out.sample_sum = std::chrono::duration<double>(histogram.sum).count();
    for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
      out.sample_count += histogram.counts[i];
      const auto bound = i < Histogram::bounds_ms.size()
                             ? std::chrono::duration<double>(Histogram::bounds_ms[i]).count()
                             : std::numeric_limits<double>::infinity();
      out.bucket.push_back({out.sample_count, bound});
    }
    return out;
  }

  const std::function<std::vector<Family>()> told_;
};

}  // namespace tenure::prometheus
