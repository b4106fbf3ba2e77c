// SPDX-License-Identifier: Apache-2.0
// Chooses victims and deeds by a seed, and carries them out.
#include "nemesis.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <tenure/kit/wait.hpp>

#include "seeds.hpp"

namespace tenure::test {
namespace {

Clock::Time now() { return boot_clock().now(); }

constexpr std::size_t least_at_work = 2;

}  // namespace

Plan Plan::from_environment(Clock::Duration term, int otherwise_seconds) {
  const auto* seconds = std::getenv("TENURE_CHAOS_SECONDS");
  Plan plan;
  plan.term = term;
  plan.duration = std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : otherwise_seconds);
  plan.between_least = term / 20;
  plan.between_most = term;
  plan.seed = wanted_seed().value_or(std::random_device()());
  return plan;
}

Nemesis::Nemesis(Fleet& fleet, const Plan& plan) : fleet_(fleet), plan_(plan), random_(plan.seed) {
  for (int i = 0; i < plan_.candidates; ++i) {
    Victim victim;
    victim.name = "c" + std::to_string(i);
    victim.pid = fleet_.start(victim.name);
    victims_.push_back(victim);
  }
}

Clock::Duration Nemesis::between(Clock::Duration least, Clock::Duration most) {
  return Clock::Duration(std::uniform_int_distribution<Clock::rep>(least.count(), most.count())(random_));
}

std::size_t Nemesis::at_work() const {
  return static_cast<std::size_t>(std::count_if(victims_.begin(), victims_.end(), [](const Victim& v) {
    return v.pid != 0 && !v.asked && v.resume == Clock::Time::max();
  }));
}

Nemesis::Victim* Nemesis::choose() {
  const auto free = [](const Victim& v) { return v.pid != 0 && !v.asked && v.resume == Clock::Time::max(); };
  const auto leader = chance(0.75) ? fleet_.leader() : 0;
  for (auto& v : victims_)
    if (leader != 0 && v.pid == leader && free(v)) return &v;
  auto& v = victims_[std::uniform_int_distribution<std::size_t>(0, victims_.size() - 1)(random_)];
  return free(v) ? &v : nullptr;
}

void Nemesis::strike(Victim& v) {
  const auto back = now() + between(Clock::Duration::zero(), plan_.term);
  if (chance(0.5)) {
    // Often about as long as the lease lasts: the moment when a resumed one may still believe in it.
    v.resume = now() + (chance(0.5) ? between(plan_.term * 7 / 10, plan_.term * 12 / 10)
                                    : between(Clock::Duration::zero(), plan_.term * 3));
    fleet_.stop(v.pid);
  } else if (chance(0.6)) {
    fleet_.note(done_to::killed, v.pid);
    fleet_.signal(v.pid, SIGKILL);
    fleet_.reap(v.pid, std::chrono::seconds(10));
    v.pid = 0;
    v.restart = back;
  } else {
    fleet_.note(done_to::asked, v.pid);
    fleet_.signal(v.pid, SIGTERM);
    v.asked = true;
    v.restart = back;
  }
}

void Nemesis::do_deed(pid_t of) {
  const auto& deed = plan_.deeds[deeds_++ % plan_.deeds.size()];
  fleet_.note(deed.name, deed.to_candidate ? of : 0);
  deed.begin(of);
  if (!deed.end) return;
  running_ = &deed;
  end_at_ = now() + between(Clock::Duration::zero(), plan_.term * 3);
}

void Nemesis::end_deed() {
  if (const auto* deed = std::exchange(running_, nullptr)) deed->end();
}

/// What is due: resumptions and restarts.
void Nemesis::tend(Clock::Time at) {
  if (running_ && end_at_ <= at) end_deed();
  for (auto& v : victims_) {
    if (v.resume <= at) {
      fleet_.resume(v.pid);
      v.resume = Clock::Time::max();
    }
    if (v.asked && fleet_.reap(v.pid, Clock::Duration::zero())) {
      v.asked = false;
      v.pid = 0;
    }
    if (v.pid == 0 && v.restart <= at) {
      v.pid = fleet_.start(v.name);
      v.restart = Clock::Time::max();
    }
  }
}

bool Nemesis::goes_on() {
  if (now() < end_) return true;
  if (!plan_.enough || end_ >= latest_end_ || plan_.enough()) return false;
  end_ += plan_.duration / 10;
  // Those who are struck again before they could lead show nothing.
  plan_.between_most = std::max(plan_.between_most, std::min(plan_.between_most * 11 / 10, plan_.term * 5));
  return true;
}

bool Nemesis::run(std::ostream& log) {
  log << "chaos: " << plan_.candidates << " candidates, " << plan_.duration.count() / 1'000'000'000
      << " s; again: " << again(plan_.seed) << '\n';
  end_ = now() + plan_.duration;
  latest_end_ = end_ + std::max<Clock::Duration>(2 * plan_.duration, std::chrono::minutes(4));
  auto next = now() + plan_.term;
  while (goes_on()) {
    tend(now());
    fleet_.events();
    if (now() >= next) {
      if (auto* victim = at_work() > least_at_work ? choose() : nullptr) {
        if (++strikes_ % 3 == 0 && !plan_.deeds.empty() && !running_)
          do_deed(victim->pid);
        else
          strike(*victim);
      }
      next = now() + between(plan_.between_least, plan_.between_most);
    }
    wait_out({boot_clock(), now() + std::min<Clock::Duration>(std::chrono::milliseconds(2), plan_.term / 20), {}});
  }
  restore();
  return recover_and_end(log);
}

/// Everybody is back, and at work.
void Nemesis::restore() {
  end_deed();
  for (auto& v : victims_) {
    if (v.asked) {
      fleet_.reap(v.pid, std::chrono::seconds(10));
      v.asked = false;
      v.pid = 0;
    }
    if (v.resume != Clock::Time::max()) v.resume = now();
    if (v.pid == 0) v.restart = now();
  }
  tend(now());
}

bool Nemesis::recover() {
  const auto patience = plan_.term * 20 + std::chrono::seconds(30);
  if (!plan_.recovered) {
    const auto leads = is("lead");
    return fleet_.await(fleet_.events().size(), leads, patience) != Fleet::npos;
  }
  const auto give_up = now() + patience;
  for (; !plan_.recovered(); wait_out({boot_clock(), now() + std::chrono::milliseconds(50), {}})) {
    if (now() > give_up) return false;
    fleet_.events();
  }
  return true;
}

bool Nemesis::recover_and_end(std::ostream& log) {
  const bool recovered = recover();
  if (!recovered) log << "they lead no more as they should\n";
  bool well = recovered;
  for (auto& v : victims_) {
    fleet_.note(done_to::asked, v.pid);
    fleet_.signal(v.pid, SIGTERM);
  }
  for (auto& v : victims_) {
    if (fleet_.reap(v.pid, plan_.term * 2 + std::chrono::seconds(30))) continue;
    log << v.name << " (" << v.pid << ") does not stop\n";
    well = false;
  }
  fleet_.events();
  return well;
}

void print(std::ostream& out, const Verdict& verdict) {
  out << "chaos: " << verdict.tenures << " tenures;";
  for (const auto& [what, count] : verdict.faults) out << ' ' << count << ' ' << what << ',';
  out << ' ' << verdict.to_leaders << " of these to leaders; ";
  if (verdict.smallest_gap)
    out << "smallest gap " << verdict.smallest_gap->count() / 1000 << " us";
  else
    out << "no hand-over";
  out << ", largest overlap " << verdict.largest_overlap.count() / 1000 << " us\n";
  for (const auto& finding : verdict.findings) out << to_string(finding.breach) << ": " << finding.what << '\n';
}

}  // namespace tenure::test
