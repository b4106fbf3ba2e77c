// SPDX-License-Identifier: Apache-2.0
// What a Leadership of one election of a group reads.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <tenure/exclusive.hpp>
#include <tenure/group.hpp>

#include "election/validity.hpp"

namespace tenure {

/// Who knows the leader of each election of a group. Any thread may ask.
class Incumbents {
 public:
  virtual std::optional<Incumbent> incumbent(const std::string& election) = 0;

 protected:
  ~Incumbents() = default;
};

/// Of one election of a group: led while the session that leads it is the one whose lease stands in the page. So a
/// session's end is one write, however many elections it leads.
///
/// A reader takes session and token before the clock and again after it, in this order. A tenure's end clears the
/// session first; the next tenure sets its token before its session. So if neither has moved, this very tenure was in
/// force when the clock was read.
class GroupValidity final : public Validity {
 public:
  /// Once `who` is gone, nobody is known to lead.
  GroupValidity(std::shared_ptr<const LeasePage> page, Clock& clock, std::weak_ptr<Incumbents> who,
                std::string election, Exclusive mode = Exclusive::yes)
      : clock_(clock), page_(std::move(page)), who_(std::move(who)), election_(std::move(election)), mode_(mode) {}

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
  void progressed() const noexcept override { progressed_at_ = clock_.now().time_since_epoch().count(); }
  Clock::Time progressed_at() const noexcept { return Clock::Time(Clock::Duration(progressed_at_.load())); }
  std::optional<Incumbent> incumbent() const override {
    const auto who = who_.lock();
    return who ? who->incumbent(election_) : std::nullopt;
  }

 private:
  Clock& clock_;
  const std::shared_ptr<const LeasePage> page_;
  const std::weak_ptr<Incumbents> who_;
  const std::string election_;
  const Exclusive mode_;
  std::atomic<std::uint64_t> session_{0}, token_{0};
  std::atomic<Clock::rep> cap_{0};
  mutable std::atomic<Clock::rep> progressed_at_{0};
};

}  // namespace tenure
