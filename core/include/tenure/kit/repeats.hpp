// SPDX-License-Identifier: Apache-2.0
// For those who write a backend or an adapter: holds back trouble that was reported a moment ago.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/clock.hpp>
#include <tenure/error.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/same_build.hpp>

namespace tenure {

/// Trouble that comes again and again is reported once a minute, with its count. It is the same if its fault is,
/// and its words without their numbers: where it happened, and in which step. One thread at a time uses it.
class Repeats {
 public:
  static constexpr Clock::Duration pause = std::chrono::minutes(1);
  /// Of one fault in one minute. A server may word its refusals as it likes, but keeps back no other fault by that.
  static constexpr std::ptrdiff_t most_kinds = 8;

  /// Returns what is to be reported now. Empty if it was reported within the last minute.
  std::optional<Error> told(Clock::Time now, Error error) {
    auto words = without_numbers(error);
    const auto known = std::ranges::find(kinds_, words, &Kind::words);
    if (known == kinds_.end()) {
      std::erase_if(kinds_, [now](const Kind& kind) { return now >= kind.told + pause; });
      if (std::ranges::count(kinds_, error.fault, &Kind::fault) == most_kinds) return std::nullopt;
      kinds_.push_back({error.fault, std::move(words), now});
      return error;
    }
    if (now < known->told + pause) {
      ++known->since;
      return std::nullopt;
    }
    if (known->since > 0) error.message += " (" + std::to_string(known->since) + " more since the last report)";
    *known = {error.fault, std::move(known->words), now};
    return error;
  }

 private:
  struct Kind {
    Fault fault{};
    std::string words;
    Clock::Time told{};
    int since{};
  };

  static std::string without_numbers(const Error& error) {
    std::string words(to_string(error.fault));
    for (const char c : error.message)
      if (c < '0' || c > '9') words += c;
    return words;
  }

  std::vector<Kind> kinds_;
};

}  // namespace tenure
