// SPDX-License-Identifier: Apache-2.0
// Goal: bad timing is refused with its numbers and a set that works. Method: each rule broken alone; then many random
// sets, whose proposed remedy is read back out of the message and must be valid.
#include <tenure/timing.hpp>

#include "election/candidacy.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <regex>

#include "refusal.hpp"

namespace tenure {
namespace {

using namespace std::chrono_literals;
using Duration = Clock::Duration;

std::string refusal(const Timing& timing) {
  return test::refusal_of([&] { timing.validate(); });
}

template <class Spoil>
std::string refusal_of(Spoil&& spoil) {
  auto timing = Timing::of(10s);
  spoil(timing);
  return refusal(timing);
}

Duration parsed(const std::string& text, const std::string& field) {
  std::smatch m;
  if (!std::regex_search(text, m, std::regex("\\b" + field + " (-?[0-9]+)(s|ms|us|ns)\\b"))) return Duration(-1);
  const auto n = std::stoll(m[1]);
  const auto unit = m[2].str();
  return Duration(unit == "s" ? n * 1'000'000'000 : unit == "ms" ? n * 1'000'000 : unit == "us" ? n * 1'000 : n);
}

/// The remedy that a refusal proposes.
Timing remedy(const std::string& message) {
  const auto text = message.substr(std::min(message.size(), message.find("This would work: ")));
  std::smatch m;
  EXPECT_TRUE(std::regex_search(text, m, std::regex("clock_rate_error ([0-9.e+]+) ppm"))) << message;
  return {.term = parsed(text, "term"),
          .renew = parsed(text, "renew"),
          .retry = parsed(text, "retry"),
          .margin = parsed(text, "margin"),
          .call = parsed(text, "call"),
          .drain = parsed(text, "drain"),
          .clock_rate_error = m.empty() ? 0 : std::stod(m[1]) / 1e6};
}

TEST(Timing, WhatOfMakesWorks) {
  for (const Duration term : {Duration(10ms), Duration(1s), Duration(10s), Duration(1h)}) {
    EXPECT_EQ(refusal(Timing::of(term)), "accepted");
    EXPECT_EQ(Timing::of(term).term, term);
  }
}

TEST(Timing, AnOutageIsRiddenOutForMostOfAFailOver) {
  for (const Duration term : {Duration(3s), Duration(10s), Duration(30s)}) {
    const auto timing = Timing::of(term);
    // A crash comes at any moment between two renewals.
    const auto mean_fail_over = timing.term - timing.renew / 2;
    EXPECT_GE(static_cast<double>(timing.rides_out().count()) / static_cast<double>(mean_fail_over.count()), 0.79);
  }
}

/// Whether a leader keeps its lead through an outage that begins that long after its last answer. What is asked before
/// its end is lost; what is asked later is answered at the last moment.
bool keeps_its_lead(const Timing& timing, Duration begins, Duration lasts, std::uint64_t jitter_seed) {
  Candidacy candidacy(timing, jitter_seed);
  std::vector<Effect> effects;
  std::optional<Question> asked;
  bool ousted = false;
  const auto take = [&] {
    candidacy.take_effects(effects);
    for (auto& effect : effects) {
      if (auto* ask = std::get_if<effect::Ask>(&effect)) asked = ask->question;
      ousted = ousted || std::holds_alternative<effect::End>(effect);
    }
  };
  Clock::Time now{1h};
  candidacy.start(now);
  take();
  candidacy.answered(now, asked->id, Granted{{1}});
  asked.reset();
  const auto outage = now + begins, heals = outage + lasts;
  const auto watched_to = heals + timing.renew + 2 * timing.call;
  for (take(); now < watched_to && !ousted; take()) {
    now = std::min(candidacy.next_alarm(), asked ? asked->by : Clock::Time::max());
    if (asked && asked->by == now) {
      const bool lost = asked->by > outage && asked->asked < heals;
      const auto id = std::exchange(asked, std::nullopt)->id;
      candidacy.answered(now, id, lost ? Answer(Unknown{{Fault::timed_out, "lost"}}) : Answer(Granted{{1}}));
    } else {
      candidacy.tick(now);
    }
  }
  return !ousted;
}

TEST(Timing, AnOutageAsLongAsStatedEndsNoTenureWheneverItBegins) {
  for (const Duration term : {Duration(3s), Duration(10s), Duration(30s)}) {
    const auto timing = Timing::of(term);
    int lost_to_a_longer_one = 0;
    for (int part = 0; part <= 50; ++part) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto begins = part * timing.renew / 50;
        EXPECT_TRUE(keeps_its_lead(timing, begins, timing.rides_out(), seed)) << part << " " << seed;
        const auto longer = timing.rides_out() + timing.call + timing.retry;
        lost_to_a_longer_one += !keeps_its_lead(timing, begins, longer, seed);
      }
    }
    EXPECT_GT(lost_to_a_longer_one, 0) << "this test could not tell";
  }
}

TEST(Timing, EveryDurationIsPositiveAndAtMostAnHourButDrainMayBeZero) {
  const std::pair<const char*, Duration Timing::*> fields[] = {{"term", &Timing::term},   {"renew", &Timing::renew},
                                                               {"retry", &Timing::retry}, {"margin", &Timing::margin},
                                                               {"call", &Timing::call},   {"drain", &Timing::drain}};
  for (const auto& [name, field] : fields)
    for (const Duration bad : {Duration::min(), Duration(-1), Duration(0), Duration(1h + 1ns), Duration::max()}) {
      const auto message = refusal_of([&, f = field](Timing& t) { t.*f = bad; });
      if (field == &Timing::drain && bad == Duration(0)) {
        EXPECT_EQ(message, "accepted");
      } else {
        EXPECT_NE(message.find(name), message.npos) << name << ": " << message;
        EXPECT_NO_THROW(remedy(message).validate()) << message;
      }
    }
}

TEST(Timing, ATermHasRoomForARenewalACallAndTheMargin) {
  const auto with_term = [](Duration term) {
    return refusal_of(
        [&](Timing& t) { t = {.term = term, .renew = 4s, .retry = 100ms, .margin = 2s, .call = 3s, .drain = 0s}; });
  };
  EXPECT_EQ(with_term(9s + 1ns), "accepted");
  const auto message = with_term(9s);
  EXPECT_NE(message.find("term (9s)"), message.npos) << message;
  EXPECT_NE(message.find("renew + call + margin (9s)"), message.npos) << message;
}

TEST(Timing, TheMarginPaysForClocksThatRunApart) {
  const auto with = [](Duration margin, double rate) {
    return refusal_of([&](Timing& t) {
      t.margin = margin;
      t.clock_rate_error = rate;
    });
  };
  EXPECT_EQ(with(10ms + 1ns, 500e-6), "accepted");
  const auto message = with(10ms, 500e-6);
  EXPECT_NE(message.find("margin (10ms)"), message.npos) << message;
  EXPECT_NE(message.find("(10ms)", message.find("2 * clock_rate_error")), message.npos) << message;
  EXPECT_EQ(with(1ns, 0), "accepted");
  for (const double rate : {-1e-9, 0.25, 1.0, std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_NE(with(500ms, rate).find("clock_rate_error"), std::string::npos) << rate;
}

TEST(Timing, TheAllowanceIsRoundedUp) {
  auto timing = Timing::of(10s);
  timing.clock_rate_error = 500e-6;
  EXPECT_EQ(timing.clock_allowance(), 10ms);
  timing.term = 1ns;
  EXPECT_EQ(timing.clock_allowance(), 1ns);
  timing.clock_rate_error = 0;
  EXPECT_EQ(timing.clock_allowance(), 0ns);
}

TEST(Timing, WhateverIsRefusedTheRemedyWorks) {
  std::mt19937_64 random(1);
  const auto duration = [&] {
    const auto magnitude = std::uniform_real_distribution<double>(0, 18.9)(random);
    const auto ns = static_cast<Duration::rep>(std::pow(10.0, magnitude));
    return Duration(random() % 10 == 0 ? -ns : ns);
  };
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    const Timing timing{.term = duration(),
                        .renew = duration(),
                        .retry = duration(),
                        .margin = duration(),
                        .call = duration(),
                        .drain = duration(),
                        .clock_rate_error = std::uniform_real_distribution<double>(-0.05, 0.3)(random)};
    const auto message = refusal(timing);
    if (message == "accepted") continue;
    ++refused;
    ASSERT_NO_THROW(remedy(message).validate()) << message;
  }
  EXPECT_GT(refused, 100);
}

TEST(Timing, WordsAreExact) {
  EXPECT_EQ(to_string(Timing{1s, 200ms, 20us, 7ns, 100ms, 0s, 500e-6}),
            "term 1s, renew 200ms, retry 20us, margin 7ns, call 100ms, drain 0s, clock_rate_error 500.000000 ppm");
}

}  // namespace
}  // namespace tenure
