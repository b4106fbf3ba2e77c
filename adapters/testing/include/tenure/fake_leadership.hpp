// SPDX-License-Identifier: Apache-2.0
// A Leadership for your unit tests, which decide what it answers.
#pragma once
#include <memory>

#include <tenure/leadership.hpp>

namespace tenure {

class OwnValidity;

/// Makes a Leadership whose answers your test decides. One thread sets them, any thread reads them.
///   ManualClock clock;
///   FakeLeadership fake(clock);
///   fake.lead({7}, 10s);  Worker worker(fake.leadership());  clock.advance(11s);
class FakeLeadership {
 public:
  /// Nobody leads. REQUIRES: the clock outlives this and each Leadership.
  explicit FakeLeadership(Clock& clock = boot_clock());

  Leadership leadership() const;  ///< For the code under test. It may outlive this.

  void lead(Token token, Clock::Duration lasting);  ///< Elects or renews: leader for `lasting` by the clock.
  void end();                                       ///< Ends the tenure now.
  void follow(Incumbent incumbent);                 ///< Lets somebody else lead for `incumbent.remaining`.

 private:
  Clock& clock_;
  std::shared_ptr<OwnValidity> validity_;
};

}  // namespace tenure
