// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include <tenure/leadership.hpp>

namespace tenure {

/// Hands out a Leadership that your test decides: for code that takes one. One thread sets, any thread reads.
///   ManualClock clock;
///   FakeLeadership fake(clock);
///   fake.lead({7}, 10s);  Worker worker(fake.leadership());  clock.advance(11s);
class TENURE_EXPORT FakeLeadership {
 public:
  explicit FakeLeadership(Clock& clock = boot_clock());

  Leadership leadership() const;

  void lead(Token token, Clock::Duration lasting);  ///< Elected, or renewed: leader until then, by the clock.
  void end();                                       ///< Ousted now.
  void follow(Incumbent incumbent);                 ///< Somebody else leads for `incumbent.remaining`.

 private:
  Clock& clock_;
  std::shared_ptr<Validity> validity_;
};

}  // namespace tenure
