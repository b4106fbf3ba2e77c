// SPDX-License-Identifier: Apache-2.0
// Carries out what the GroupCandidacy decides, and brings it the answers of the GroupStore.
#include "group/group_shell.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/who.hpp>

#include "kit/random.hpp"

namespace tenure {
namespace {

constexpr const char* store_is = "the store";

void check_mode(const GroupStore& store, Exclusive wanted) {
  if (store.exclusive() == wanted) return;
  if (wanted == Exclusive::no)
    throw std::invalid_argument("Elections: Exclusive::no was asked for, but the store \"" +
                                printable(store.group(), 80) +
                                "\" is exclusive. Open it with Exclusive::no (kafka::open_group offers that), or leave "
                                "the argument out");
  throw std::invalid_argument(
      "Elections: in the store \"" + printable(store.group(), 80) +
      "\" several processes may lead an election at once, and there is no fencing token. If the "
      "work allows that, say so: Elections(Exclusive::no, store, ...). If not, open the store "
      "with Exclusive::yes");
}

void check_spread(const Spread& spread, const GroupStore& store) {
  if (spread.weight < 1 || spread.weight > max_weight)
    throw std::invalid_argument("Elections: spread.weight must be from 1 to 1000, not " +
                                std::to_string(spread.weight));
  constexpr Spread plain{};
  if (store.allots() && (spread.on != plain.on || spread.most != plain.most || spread.weight != plain.weight))
    throw std::invalid_argument("Elections: the store \"" + printable(store.group(), 80) +
                                "\" allots the elections itself, to each process alike. What one may not lead would be "
                                "led by nobody. Leave out spread.on, spread.most and spread.weight");
}

const GroupStore& accepted(const std::shared_ptr<GroupStore>& store, Exclusive exclusive, const Timing& timing,
                           const Hooks& hooks, const Spread& spread, int hook_threads) {
  if (!store) throw std::invalid_argument("Elections: store is null");
  check_mode(*store, exclusive);
  check_hooks(hooks);
  if (hook_threads < 1) throw std::invalid_argument("Elections: hook_threads must be at least 1");
  check_spread(spread, *store);
  timing.validate();
  if (const auto refused = store->accepts(timing)) throw std::invalid_argument("Timing: " + refused->message);
  return *store;
}

}  // namespace

void check_hooks(const Hooks& hooks) {
  if (hooks.eligible) throw std::invalid_argument("Elections: Hooks::eligible is not offered for a group of elections");
  stall_limits(hooks);
}

Elections::Shell::Shell(Exclusive exclusive, std::shared_ptr<GroupStore> store, Candidate candidate,
                        const Timing& timing, const Hooks& hooks, const Spread& spread, int hook_threads, Clock& clock)
    : EngineOf({.owner = "Elections",
                .of = "group",
                .name = accepted(store, exclusive, timing, hooks, spread, hook_threads).group(),
                .verbs = {"open", "commit", "look", "end", "sweep"},
                .hook_threads = hook_threads,
                .errors_apart = true,
                .hang_after = timing.term},
               timing, hooks, clock,
               GroupCandidacy(
                   who_text(checked(std::move(candidate)), draw_incarnation()), timing, [] { return random_u64(); },
                   spread, static_cast<std::size_t>(hook_threads))),
      mode(exclusive),
      store_(std::move(store)),
      page_(std::make_shared<LeasePage>()),
      slots_(page_, [this](const std::string& election) { return make_validity(election); }) {}

void Elections::Shell::join_elections(std::vector<std::string> elections, SharedHooks hooks) {
  if (over()) return;
  const auto stall = stall_limits(hooks ? *hooks : *hooks_);
  // Those of before are here if the work that they began has not ended yet. They go with this fact and not within it:
  // what the user keeps in them may ask us something where it ends, and a lock is held here.
  post([this, stall, elections = std::move(elections), hooks = std::move(hooks),
        before = std::vector<SharedHooks>()](Clock::Time now) mutable {
    for (const auto& election : elections) {
      if (!machine_.join(now, election, stall)) continue;
      if (auto old = own_hooks_.extract(election)) before.push_back(std::move(old.mapped()));
      if (hooks) own_hooks_[election] = hooks;
    }
  });
}

void Elections::Shell::leave(const std::string& election) {
  if (over()) return;
  post([this, election](Clock::Time now) { machine_.leave(now, election); });
}

void Elections::Shell::resign(const std::string& election, std::optional<Clock::Duration> cool_down) {
  post([this, election, cool_down](Clock::Time now) { machine_.resign(now, election, cool_down); });
}

bool Elections::Shell::hand_over(const std::string& election, const std::string& to) {
  if (over()) return false;
  {
    const Lock lock(machine_mutex_);
    if (!machine_.heir_named(clock_.now(), election, to)) return false;
  }
  post([this, election, to](Clock::Time now) { machine_.hand_over(now, election, to); });
  return true;
}

std::shared_ptr<GroupValidity> Elections::Shell::make_validity(const std::string& election) {
  const auto who = [self = weak_from_this(), election] {
    const auto shell = std::static_pointer_cast<Shell>(self.lock());
    return shell ? shell->incumbent(election) : std::nullopt;
  };
  return std::make_shared<GroupValidity>(page_, clock_, who, mode);
}

std::shared_ptr<GroupValidity> Elections::Shell::validity(const std::string& election) {
  if (forked()) return make_validity(election);  // before the lock: it may have been held when we were forked
  return slots_.get(election);
}

std::optional<Incumbent> Elections::Shell::incumbent(const std::string& election) {
  if (over()) return std::nullopt;  // before the lock: it may have been held when we were forked
  const Lock lock(machine_mutex_);
  return machine_.incumbent(election, clock_.now());
}

std::vector<std::string> Elections::Shell::unled() {
  if (forked()) return {};
  const Lock lock(machine_mutex_);
  return machine_.unled(clock_.now());
}

std::vector<std::pair<std::string, Token>> Elections::Shell::led() const {
  if (forked()) return {};
  return slots_.led();
}

GroupMetrics Elections::Shell::metrics() const {
  if (forked()) return {};
  GroupMetrics out{.group = store_->group(), .led = slots_.leads()};
  const auto now = clock_.now();
  const auto left = Clock::Duration(page_->view().deadline) - now.time_since_epoch();
  out.session = snapshot(std::max(left, Clock::Duration::zero()), now);
  out.session.is_leader = out.led > 0;
  const Lock lock(machine_mutex_);
  out.joined = machine_.joined();
  out.stalled = machine_.stalled();
  out.session.stalled = out.stalled > 0;
  return out;
}

std::size_t Elections::Shell::kept() const { return Engine::kept() + slots_.size() + own_hooks_.size(); }

void Elections::Shell::hear_progress(Clock::Time now) {
  for (const auto& election : machine_.progress_due(now))
    machine_.progressed(election, slots_.get(election)->progressed_at());
}

void Elections::Shell::carry_out(Effect& any) {
  struct Carrier {
    Shell& s;
    void operator()(group_effect::Ask& e) {
      s.ask([&s = s, question = std::move(e.question)](const std::stop_token& stop) {
        return s.answer_to(question, stop);
      });
    }
    void operator()(group_effect::Interrupt&) { s.interrupt(); }
    void operator()(group_effect::Publish& e) {
      s.page_->write(e.session.value, e.deadline.time_since_epoch().count());
    }
    void operator()(group_effect::Withdraw&) { s.page_->write(0, 0); }
    void operator()(group_effect::Lead& e) {
      s.count_elected();
      s.slots_.hold(e.election)->lead(e.token, e.session);
    }
    void operator()(group_effect::Cap& e) { s.slots_.get(e.election)->cap(e.at); }
    void operator()(group_effect::Unlead& e) { s.slots_.get(e.election)->withdraw(); }
    void operator()(group_effect::Begin& e) { s.begin(e.election, s.told(e.token), s.hooks_of(e.election)); }
    void operator()(group_effect::FireStop& e) { s.signals(e.election).stop.request_stop(); }
    void operator()(group_effect::DoneBy& e) { s.signals(e.election).done_by = e.at.time_since_epoch().count(); }
    void operator()(group_effect::End& e) {
      s.end({e.election, s.told(e.token), e.reason, std::move(e.detail), std::nullopt, {}, {}});
    }
    void operator()(group_effect::FireExpired& e) { s.signals(e.election).expired.request_stop(); }
    void operator()(group_effect::Overrun& e) { s.overran(e.election); }
    void operator()(group_effect::Joined& e) { s.store_->joined(e.election); }
    void operator()(group_effect::Left& e) {
      s.store_->left(e.election);
      s.own_hooks_.erase(e.election);
      s.signals_.erase(e.election);
      s.slots_.let_go(e.election);
    }
    void operator()(group_effect::Report& e) { s.report(std::move(e.error), s.hooks_of(e.election), e.election); }
    void operator()(group_effect::Changed&) { s.waiters.changed(); }
    void operator()(group_effect::Ended& e) { s.quit(e.store_wedged); }
  };
  std::visit(Carrier{*this}, any);
}

/// Those of a tenure that runs are kept with it: it may have been joined anew with others.
Elections::Shell::SharedHooks Elections::Shell::hooks_of(const std::string& election) const {
  const auto own = own_hooks_.find(election);
  return own == own_hooks_.end() ? hooks_ : own->second;
}

Engine::Fact Elections::Shell::answer_to(const GroupQuestion& q, const std::stop_token& interrupted) {
  struct Caller {
    Shell& s;
    const GroupQuestion& q;
    const Limit& limit;
    Fact operator()(const ask::Open& a) {
      return committed(s.counted<Committed>("open", store_is, [&] { return s.store_->open(a.id, a.session, limit); }));
    }
    Fact operator()(const ask::Write& a) {
      return committed(s.counted<Committed>("commit", store_is, [&] { return s.store_->commit(a.commit, limit); }));
    }
    Fact committed(Result<Committed> result) {
      if (result && result->granted) s.tally_.granted(q.asked);
      return [&s = s, id = q.id, result = std::move(result)](Clock::Time now) mutable {
        s.machine_.committed(now, id, std::move(result));
      };
    }
    Fact operator()(const ask::See& a) {
      auto result = s.counted<Look>("look", store_is, [&] { return s.store_->look(a.cursor, limit); });
      return [&s = s, id = q.id, result = std::move(result)](Clock::Time now) mutable {
        s.machine_.looked(now, id, std::move(result));
      };
    }
    Fact operator()(const ask::End& a) {
      auto result = s.counted<bool>("end", store_is, [&] { return s.store_->end(a.id, a.beats, a.new_beat, limit); });
      return [&s = s, id = q.id, result = std::move(result)](Clock::Time now) { s.machine_.ended(now, id, result); };
    }
    Fact operator()(const ask::Sweep&) {
      auto result = s.counted<int>("sweep", store_is, [&] { return s.store_->sweep(limit); });
      return [&s = s, id = q.id, result = std::move(result)](Clock::Time now) { s.machine_.swept(now, id, result); };
    }
    Fact operator()(const ask::Await& a) {  // It is no call whose duration tells anything.
      const auto result =
          s.counted<std::optional<Release>>(nullptr, store_is, [&] { return s.store_->await_change(a.cursor, limit); });
      return [&s = s, id = q.id, result](Clock::Time now) {
        if (result)
          s.machine_.awaited(now, id, *result);
        else
          s.machine_.wait_failed(now, id, result.error());
      };
    }
  };
  const Limit limit{clock_, q.by, interrupted};
  return std::visit(Caller{*this, q, limit}, q.what);
}

}  // namespace tenure
