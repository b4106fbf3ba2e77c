// SPDX-License-Identifier: Apache-2.0
// Sets the Validity that a Leadership of a test asks.
#include <tenure/fake_leadership.hpp>

#include <utility>

#include "election/validity.hpp"
#include "time/later.hpp"

namespace tenure {

FakeLeadership::FakeLeadership(Clock& clock) : clock_(clock), validity_(std::make_shared<OwnValidity>(clock)) {}

Leadership FakeLeadership::leadership() const { return Leadership(validity_); }

void FakeLeadership::lead(Token token, Clock::Duration lasting) {
  validity_->publish(token, later(clock_.now(), lasting));
}

void FakeLeadership::end() { validity_->withdraw(); }

void FakeLeadership::follow(Incumbent incumbent) {
  const auto until = later(clock_.now(), incumbent.remaining);
  validity_->withdraw();
  validity_->hear(std::move(incumbent), until);
}

}  // namespace tenure
