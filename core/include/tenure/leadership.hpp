// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <optional>

#include <tenure/candidate.hpp>
#include <tenure/clock.hpp>
#include <tenure/export.hpp>
#include <tenure/token.hpp>

namespace tenure {

class Validity;

/// What code that acts as leader takes: the manager gives one out, and so does FakeLeadership for your tests.
///
/// A small value, cheap to copy, valid for as long as you like (false after the manager is gone). Any thread, any
/// time. All but incumbent() are lock-free, allocate nothing and compare the clock with the deadline at every call:
/// there is no flag that a paused thread could leave standing. In a forked child all answer "no".
class TENURE_EXPORT Leadership {
 public:
  explicit Leadership(std::shared_ptr<const Validity>);

  bool is_leader() const noexcept;

  /// Ours, if the lease runs at this very instant by our own clock.
  std::optional<Token> token() const noexcept;

  /// Until the deadline as it stands; zero if we do not lead. Renewals move it.
  Clock::Duration remaining() const noexcept;

  /// The token, if at least `cost` remains: ask before an act that takes that long.
  std::optional<Token> guard(Clock::Duration cost) const noexcept;

  /// Who else leads, as last heard; nobody once that lease has ended by our clock, nor while we lead ourselves.
  std::optional<Incumbent> incumbent() const;

 private:
  std::shared_ptr<const Validity> validity_;
};

}  // namespace tenure
