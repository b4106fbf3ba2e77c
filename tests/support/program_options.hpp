// SPDX-License-Identifier: Apache-2.0
// The options of a program of the tests: "--name value", each with what it is if nobody gives it.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace tenure::test {

class Options {
 public:
  /// `known`: what each is if nobody gives it; nothing: it is needed. Throws std::invalid_argument for an option that
  /// is not among them, has no value, or is needed.
  Options(int argc, char** argv, std::map<std::string, std::optional<std::string>> known) : values_(std::move(known)) {
    for (int i = 1; i < argc; i += 2) {
      const std::string name = argv[i];
      if (!values_.contains(name)) throw std::invalid_argument(name + " is no option; these are: " + names());
      if (i + 1 == argc) throw std::invalid_argument(name + " has no value");
      values_[name] = argv[i + 1];
    }
    for (const auto& [name, value] : values_)
      if (!value) throw std::invalid_argument(name + " is needed; the options are: " + names());
  }

  const std::string& text(const std::string& name) const { return *values_.at(name); }
  std::size_t number(const std::string& name) const { return std::stoul(text(name)); }

 private:
  std::string names() const {
    std::string out;
    for (const auto& [name, value] : values_) out += (out.empty() ? "" : " ") + name;
    return out;
  }

  std::map<std::string, std::optional<std::string>> values_;
};

}  // namespace tenure::test
