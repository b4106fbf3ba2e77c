// SPDX-License-Identifier: Apache-2.0
// Backends at a real broker; a test calls them verb by verb.
#pragma once
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <tenure/kafka.hpp>
#include <tenure/kit/wait.hpp>

#include "messages.hpp"
#include "once.hpp"
#include "within.hpp"

namespace tenure::kafka::test {

using namespace std::chrono_literals;
using tenure::test::Lines;
using tenure::test::mentions;
using tenure::test::once;
using tenure::test::within;

inline constexpr auto patience = 40s;  ///< When a test gives up.

/// A backend with the patience of a manager.
class Candidate {
 public:
  explicit Candidate(Options options, Timing timing = presets().fast)
      : backend(open(std::move(options))), timing_(timing) {
    if (const auto error = backend->accepts(timing_)) throw std::invalid_argument(error->message);
  }
  Answer acquire() { return backend->acquire(within(timing_.call)); }
  Answer renew(Token token) { return backend->renew(token, within(timing_.call)); }
  std::optional<Error> release() { return backend->release(within(timing_.call)); }
  Sight observe() { return backend->observe(within(timing_.call)); }
  /// What no coordinator answered in time is asked again, as a manager does: for as long as a lease would last.
  bool renewed(Token token) {
    const auto unanswered = [](const Answer& answer) {
      const auto* unknown = std::get_if<Unknown>(&answer);
      return unknown && unknown->error.fault == Fault::timed_out;
    };
    const auto lease = within(timing_.term);
    auto answer = renew(token);
    while (unanswered(answer) && !lease.passed()) answer = renew(token);
    return std::holds_alternative<Granted>(answer);
  }
  /// The same for the release.
  std::optional<Error> released() {
    const auto all = within(patience);
    auto error = release();
    while (error && error->fault == Fault::timed_out && !all.passed()) error = release();
    return error;
  }
  /// The first answer that is not Unknown, or the last one.
  Answer answered() {
    const auto all = within(patience);
    auto answer = acquire();
    while (std::holds_alternative<Unknown>(answer) && !all.passed()) answer = acquire();
    return answer;
  }
  Sight sees() {
    const auto all = within(patience);
    auto sight = observe();
    while (std::holds_alternative<Unknown>(sight) && !all.passed()) sight = observe();
    return sight;
  }

  std::optional<Token> campaign(Clock::Duration d = patience) {
    const auto all = within(d);
    while (!all.passed()) {
      const auto answer = acquire();
      if (const auto* granted = std::get_if<Granted>(&answer)) return granted->token;
      if (const auto* denied = std::get_if<Denied>(&answer))
        backend->await_change(denied->holder ? Sight(*denied->holder) : Sight(Vacant{}),
                              within(std::min(timing_.term, all.by - boot_clock().now())));
      else
        wait_out(within(timing_.retry));
    }
    return std::nullopt;
  }
  /// The first error that `fault` is; other answers are waited out.
  std::optional<Error> trouble(Fault fault) {
    for (const auto all = within(patience); !all.passed();) {
      const auto answer = acquire();
      if (const auto* unknown = std::get_if<Unknown>(&answer); unknown && unknown->error.fault == fault)
        return unknown->error;
      if (std::holds_alternative<Granted>(answer)) return std::nullopt;
      backend->await_change(Vacant{}, within(200ms));
    }
    return std::nullopt;
  }

  std::shared_ptr<Backend> backend;

 private:
  Timing timing_;
};

}  // namespace tenure::kafka::test
