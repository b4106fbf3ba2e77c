// SPDX-License-Identifier: Apache-2.0
// Figures with their number of runs, minimum, median and maximum.
#pragma once
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace tenure::bench {

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto n = values.size();
  return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline void print_header(const char* unit) {
  std::printf("%-58s %5s %10s %10s %10s  %s\n", "figure", "n", "min", "median", "max", unit);
}

inline void print_row(const std::string& name, const std::vector<double>& values) {
  if (values.empty()) {
    std::printf("%-58s %5d %10s %10s %10s\n", name.c_str(), 0, "-", "-", "-");
    return;
  }
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  std::printf("%-58s %5zu %10.3f %10.3f %10.3f\n", name.c_str(), values.size(), *low, median(values), *high);
  std::fflush(stdout);
}

}  // namespace tenure::bench
