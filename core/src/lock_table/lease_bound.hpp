// SPDX-License-Identifier: Apache-2.0
// Until when another process may lead, by our clock.
#pragma once
#include <optional>
#include <string>

#include <tenure/clock.hpp>
#include <tenure/conditional_store.hpp>

namespace tenure {

/// How long ago the record was written, by the store's clock. Nothing if that cannot be right.
std::optional<Clock::Duration> age(const Record& record, std::int64_t now_ms, Clock::Duration longest);

/// Bounds by our clock until when another process may lead, as far as its records show.
///
/// Its lease ends one term after it asked, by its own clock. Our clock bounds that moment: it asked before we received
/// the answer, for this version and for every earlier one of the same process. While its clock counts one second, ours
/// counts at most (1 + rate) / (1 - rate).
class LeaseBound {
 public:
  using Time = Clock::Time;
  using Duration = Clock::Duration;

  /// A version that we had not seen before, received `at`. `asked`: its holder's clock. `late`: how long before that
  /// it was written, by the store's clock; `longest`, the longest term that we know of, if nobody can tell.
  /// Returns true if nothing earlier counts any more.
  bool saw(const std::string& who, Duration asked, Time at, Duration late, Duration longest, double rate);

  /// Nobody's clock but ours is known.
  void forget() { lag_.reset(); }

  /// REQUIRES: saw() since the last forget(), for these two.
  Time end(Duration longest) const { return Time(lag_->asked + lag_->most) + longest; }
  Duration excess() const { return lag_->excess; }

  explicit operator bool() const { return lag_.has_value(); }

 private:
  struct Lag {
    std::string who;
    Duration asked{};   ///< The `asked` of the newest version seen.
    Duration most{};    ///< Our clock minus theirs, at `asked`.
    Duration excess{};  ///< By how much `most` may be too large: a hint, by the store's clock.
  };
  std::optional<Lag> lag_;
};

}  // namespace tenure
