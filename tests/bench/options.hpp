// SPDX-License-Identifier: Apache-2.0
// The options of a bench: "--name value", each with what it is if nobody gives it.
#pragma once
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace tenure::bench {

class Options {
 public:
  /// Throws std::invalid_argument for an option that is not among the known ones, or has no value.
  Options(int argc, char** argv, std::map<std::string, std::string> known) : values_(std::move(known)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (!values_.contains(name)) throw std::invalid_argument(name + " is no option; these are: " + names());
      if (i + 1 == argc) throw std::invalid_argument(name + " has no value");
      values_[name] = argv[i + 1];
    }
  }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  std::size_t number(const std::string& name) const { return std::stoul(values_.at(name)); }

 private:
  std::string names() const {
    std::string out;
    for (const auto& [name, value] : values_) out += (out.empty() ? "" : " ") + name;
    return out;
  }

  std::map<std::string, std::string> values_;
};

}  // namespace tenure::bench
