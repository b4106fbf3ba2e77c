// SPDX-License-Identifier: Apache-2.0
// Each question of code that acts as leader goes to its Validity.
#include <tenure/leadership.hpp>

#include <utility>

#include "election/validity.hpp"

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

}  // namespace tenure
