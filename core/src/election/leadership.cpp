// SPDX-License-Identifier: Apache-2.0
// Leadership asks its Validity. FakeLeadership sets one.
#include <tenure/leadership.hpp>

#include <utility>

#include <tenure/fake_leadership.hpp>

#include "election/validity.hpp"
#include "time/later.hpp"

namespace tenure {

Leadership::Leadership(std::shared_ptr<const Validity> validity) : validity_(std::move(validity)) {}

bool Leadership::is_leader() const noexcept { return static_cast<bool>(validity_->now()); }

bool Leadership::exclusive() const noexcept { return validity_->exclusive(); }

std::optional<Token> Leadership::token() const noexcept { return guard(Clock::Duration::zero()); }

Clock::Duration Leadership::remaining() const noexcept { return validity_->now().remaining; }

std::optional<Token> Leadership::guard(Clock::Duration cost) const noexcept {
  const auto now = validity_->now();
  if (!now || now.remaining < cost || now.token == Token{}) return std::nullopt;
  return now.token;
}

void Leadership::progressed() const noexcept { validity_->progressed(); }

std::optional<Incumbent> Leadership::incumbent() const { return validity_->incumbent(); }

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
