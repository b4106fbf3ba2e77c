// SPDX-License-Identifier: Apache-2.0
// The rules of a Timing, and the errors that name them.
#include <tenure/timing.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace tenure {
namespace {

using Duration = Clock::Duration;

std::string words(Duration d) {
  const auto ns = d.count();
  if (ns % 1'000'000'000 == 0) return std::to_string(ns / 1'000'000'000) + "s";
  if (ns % 1'000'000 == 0) return std::to_string(ns / 1'000'000) + "ms";
  if (ns % 1'000 == 0) return std::to_string(ns / 1'000) + "us";
  return std::to_string(ns) + "ns";
}

[[noreturn]] void refuse(const Timing& timing, const std::string& rule, double clock_rate_error) {
  const auto term = std::clamp<Duration>(timing.term, std::chrono::milliseconds(10), max_term);
  auto works = Timing::of(term);
  if (clock_rate_error >= 0 && clock_rate_error < 0.25) {
    works.clock_rate_error = clock_rate_error;
    works.margin = std::max(works.margin, works.clock_allowance() * 5 / 4);
    const auto left = term - works.margin;
    works.renew = std::min(works.renew, left / 3);
    works.call = std::min(works.call, left / 3);
  }
  throw std::invalid_argument("Timing: " + rule + ". Given: " + to_string(timing) +
                              ". This would work: " + to_string(works));
}

}  // namespace

Timing Timing::of(Duration term) {
  using std::chrono::milliseconds;
  const auto part = [term](int of_long, int of_short, Duration enough) {
    return std::max(term / of_long, std::min(term / of_short, enough));
  };
  return {.term = term,
          .renew = term / 5,
          .retry = part(100, 50, milliseconds(30)),
          .margin = part(40, 20, milliseconds(75)),
          .call = part(40, 10, milliseconds(75)),
          .drain = term};
}

Duration Timing::clock_allowance() const {
  return Duration(static_cast<Clock::rep>(std::ceil(2 * clock_rate_error * static_cast<double>(term.count()))));
}

void Timing::validate() const {
  if (!(clock_rate_error >= 0 && clock_rate_error < 0.25))
    refuse(*this, "clock_rate_error must be at least 0 and below 0.25", 500e-6);
  const std::pair<const char*, Duration> fields[] = {{"term", term},     {"renew", renew}, {"retry", retry},
                                                     {"margin", margin}, {"call", call},   {"drain", drain}};
  for (const auto& [name, value] : fields) {
    const bool may_be_zero = value == drain && name == std::string_view("drain");
    if (value < Duration::zero() || (value == Duration::zero() && !may_be_zero))
      refuse(*this, std::string(name) + " must be " + (may_be_zero ? "at least zero" : "positive"), clock_rate_error);
    if (value > max_term) refuse(*this, std::string(name) + " must be at most an hour", clock_rate_error);
  }
  if (term <= renew + call + margin)
    refuse(*this,
           "term (" + words(term) + ") must be greater than renew + call + margin (" + words(renew + call + margin) +
               "), or one slow answer ends the tenure",
           clock_rate_error);
  if (margin <= clock_allowance())
    refuse(*this,
           "margin (" + words(margin) + ") must be greater than 2 * clock_rate_error * term (" +
               words(clock_allowance()) + "), or nothing is left for you to stop in",
           clock_rate_error);
}

std::string to_string(const Timing& t) {
  return "term " + words(t.term) + ", renew " + words(t.renew) + ", retry " + words(t.retry) + ", margin " +
         words(t.margin) + ", call " + words(t.call) + ", drain " + words(t.drain) + ", clock_rate_error " +
         std::to_string(t.clock_rate_error * 1e6) + " ppm";
}

}  // namespace tenure
