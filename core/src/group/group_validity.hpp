// SPDX-License-Identifier: Apache-2.0
// What a Leadership of one election of a group reads.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tenure/exclusive.hpp>
#include <tenure/group.hpp>

#include "election/validity.hpp"

namespace tenure {

/// Of one election of a group: led while the session that leads it is the one whose lease stands in the page. So a
/// session's end is one write, however many elections it leads.
///
/// A reader takes session and token before the clock and again after it, in this order. A tenure's end clears the
/// session first; the next tenure sets its token before its session. So if neither has moved, this very tenure was in
/// force when the clock was read.
class GroupValidity final : public Validity {
 public:
  using Incumbents = std::function<std::optional<Incumbent>()>;

  /// `who`: what incumbent() says. Any thread calls it.
  GroupValidity(std::shared_ptr<const LeasePage> page, Clock& clock, Incumbents who = {},
                Exclusive mode = Exclusive::yes)
      : Validity(clock), page_(std::move(page)), who_(std::move(who)), mode_(mode) {}

  // For the writer: one thread at a time, the decider.
  void lead(Token token, SessionId session) noexcept {
    cap_.store(Clock::Time::max().time_since_epoch().count(), std::memory_order_release);
    token_.store(token.value, std::memory_order_release);
    session_.store(session.value, std::memory_order_release);
  }
  void cap(Clock::Time at) noexcept { cap_.store(at.time_since_epoch().count(), std::memory_order_release); }
  void withdraw() noexcept { session_.store(0, std::memory_order_release); }

  Now now() const noexcept override {
    for (;;) {
      const auto view = page_->view();
      const auto session = session_.load(std::memory_order_acquire);
      const auto token = token_.load(std::memory_order_acquire);
      if (view.deadline == 0 || session == 0 || session != view.holder) return {};
      const auto until = std::min(view.deadline, cap_.load(std::memory_order_acquire));
      const auto left = until - clock_.now().time_since_epoch().count();
      const bool same = session_.load(std::memory_order_acquire) == session &&
                        token_.load(std::memory_order_acquire) == token && page_->stands(view);
      if (!same) continue;
      if (left <= 0) return {};
      return {exclusive() ? Token{token} : Token{}, Clock::Duration(left)};
    }
  }

  bool exclusive() const noexcept override { return mode_ == Exclusive::yes; }
  std::optional<Incumbent> incumbent() const override { return who_ ? who_() : std::nullopt; }

 private:
  const std::shared_ptr<const LeasePage> page_;
  const Incumbents who_;
  const Exclusive mode_;
  std::atomic<std::uint64_t> session_{0}, token_{0};
  std::atomic<Clock::rep> cap_{0};
};

}  // namespace tenure
