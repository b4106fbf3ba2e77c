// SPDX-License-Identifier: Apache-2.0
// A group of elections on a server: the GroupStore, and what is known of the group's log.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tenure/group_store.hpp>
#include <tenure/kit/joined_names.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/repeats.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/log.hpp>

#include "group_scripts.hpp"
#include "group_text.hpp"
#include "link.hpp"
#include "options.hpp"
#include "reply.hpp"
#include "wire.hpp"

namespace tenure::redis {
namespace {

/// A whole look: two elements per lead, and at most 0.3 KiB.
constexpr ReplyLimit group_limit{256 << 20, 1 << 20,
                                 "more than a group of 500 000 elections has; remove what somebody else wrote to it"};

constexpr std::size_t most_leads = 1 << 19;

Connection::Purpose purpose(const Options& options, Connection::Use use, const std::string& group) {
  return {options, use, client_name(group, {}), use == Connection::Use::commands ? group_limit : record_limit};
}

/// 60 random bits of the kernel; never zero.
std::uint64_t draw_marker() { return *number<std::uint64_t>(draw_incarnation().substr(0, 15), 16) + 1; }

Limit first_half_of(const Limit& limit) {
  const auto now = limit.clock.now();
  return {limit.clock, limit.by > now ? now + (limit.by - now) / 2 : limit.by, limit.stop};
}

/// What was pushed since the last look. Whoever waits anew and has not looked is told it again, also if the wait in
/// which it came was ended before it could say so. Any thread.
class News {
 public:
  void heard(const std::string& message) {
    const std::lock_guard lock(mutex_);
    ++count_;
    last_ = message;
  }

  /// A look that is asked now tells all that was heard until now, or shows that it was forged.
  std::uint64_t begin_look() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

  void looked(std::uint64_t begun) {
    const std::lock_guard lock(mutex_);
    if (count_ == begun) last_.reset();
  }

  /// Of what was not looked at: the last message, if it is news to whoever has this cursor.
  std::optional<std::string> since(const std::string& cursor) const {
    const std::lock_guard lock(mutex_);
    return last_ && is_news(*last_, cursor) ? last_ : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t count_{};
  std::optional<std::string> last_;
};

/// The connections for questions and for pushes have Sentinels of their own, because two threads use them.
class Group final : public GroupStore {
 public:
  Group(const Options& options, const std::string& group, Log log)
      : group_(group),
        key_(group_key_of(checked(options), group)),
        replicas_(options.replicas),
        loses_nothing_(options.first_claim == FirstClaim::at_once),
        warn_(warnings(std::move(log), "group", group)),
        commands_(purpose(options, Connection::Use::commands, group), sentinels_of(options, client_name(group, {})),
                  warn_, Link::Made::now),
        notices_(purpose(options, Connection::Use::notices, group), sentinels_of(options, client_name(group, {})),
                 warn_, Link::Made::now) {}

  std::string group() const override { return group_; }
  void joined(const std::string& election) override { joined_.join(election); }
  void left(const std::string& election) override { joined_.leave(election); }
  Result<Look> look(const std::string& cursor, const Limit& limit) override {
    const auto joined = joined_.all();
    if (cursor.empty() && joined.empty()) return everything(limit);
    const auto begun = news_->begin_look();
    auto found = looked(cursor, joined, limit);
    if (found && !cursor.empty() && !found->whole && found->cursor.empty()) return look({}, limit);
    if (found) take(*found, begun);
    return found;
  }

  Result<Committed> open(SessionId id, const Session& session, const Limit& limit) override {
    const auto begun = news_->begin_look();
    joined_.session_begins();
    const auto joined = joined_.all();
    const auto answer = run(open_script, open_arguments(id, session, draw_marker(), joined), limit, replicas_);
    if (!answer) return answer.error();
    auto opened = opened_of(*answer, key_);
    if (!opened) return std::move(opened).error();
    if (joined.empty()) {
      auto all = everything(limit);
      if (!all) return std::move(all).error();
      opened->committed.look = *std::move(all);
    } else {
      take(opened->committed.look, begun);
    }
    if (opened->founded && !loses_nothing_)
      warn_("this group is new, or Redis has lost it: the first leaders of its elections begin a term (" +
            std::to_string(std::chrono::ceil<std::chrono::milliseconds>(session.record.term).count()) +
            " ms) later. Where no record is ever lost, first_claim=at_once spares that");
    return std::move(opened->committed);
  }

  Result<Committed> commit(const Commit& commit, const Limit& limit) override {
    if (auto error = refused_commit(commit)) return *std::move(error);
    const auto begun = news_->begin_look();
    const auto left = joined_.left_before(commit);
    const bool claims = may_claim(commit, limit);
    const auto answer = run(commit_script, commit_arguments(commit, loses_nothing_, claims), limit, replicas_);
    if (!answer) return answer.error();
    auto committed = committed_of(*answer, commit, key_);
    if (!committed) return committed;
    take(committed->look, begun);
    if (committed->granted && !committed->look.cursor.empty()) joined_.forget(left);
    return committed;
  }

  Result<bool> end(SessionId id, const std::vector<std::uint64_t>& beats, std::uint64_t new_beat,
                   const Limit& limit) override {
    const auto answer = run(end_script, end_arguments(id, beats, new_beat), limit, replicas_);
    if (!answer) return answer.error();
    const auto ended = count_of(*answer, key_);
    if (!ended) return ended.error();
    return *ended == 1;
  }

  /// Many short calls: between two of them the server answers others. What half of the limit does not suffice for, the
  /// next sweep goes on with, and that shall come soon.
  Result<int> sweep(const Limit& limit) override {
    const auto half = first_half_of(limit);
    int removed = 0;
    do {
      if (std::exchange(pass_by_, commands_.connection()) != commands_.connection()) pass_ = {};
      const auto pass = std::exchange(pass_, {});
      const auto answer = run(sweep_script, sweep_arguments(draw_incarnation(), pass), limit, 0);
      if (!answer) return answer.error();
      auto swept = swept_of(*answer, key_);
      if (!swept) return std::move(swept).error();
      removed += swept->removed;
      pass_ = std::move(swept->rest);
    } while (pass_.at != "0" && !half.passed());
    return std::max(removed, pass_.at == "0" ? 0 : 1);
  }

  Result<std::set<std::string>> retire(const std::map<std::string, Token>& leads, const Limit& limit) override {
    if (auto error = refused_retirement(leads)) return *std::move(error);
    const auto answer = run(retire_script, retire_arguments(leads), limit, replicas_);
    if (!answer) return answer.error();
    return retired_of(*answer, leads, key_);
  }

  std::optional<Error> request_step_down(const std::string& election, const StepDown& request,
                                         const Limit& limit) override {
    const auto answer =
        run(step_down_lead_script, step_down_arguments(election, request, draw_incarnation()), limit, 0);
    if (!answer) return answer.error();
    const auto found = count_of(*answer, key_);
    if (!found) return found.error();
    if (*found == 1) return std::nullopt;
    return Error{Fault::misconfigured, "nobody has ever led \"" + printable(election, 40) + "\" in the group \"" +
                                           printable(group_, 40) + "\", so nobody can be asked to step down"};
  }

  std::optional<Release> await_change(const std::string& cursor, const Limit& limit) override {
    auto message = news_->since(cursor);
    const auto matters = [cursor, news = news_](const std::string& pushed) {
      if (!is_news(pushed, cursor)) return false;
      news->heard(pushed);
      return true;
    };
    if (!message) message = notices_.await_message(key_ + ":log", matters, notices_, limit);
    return message ? release_in(*message) : std::nullopt;
  }

 private:
  /// All leads, as far as they have been read.
  struct Scan {
    Page seen{};
    std::uint64_t connection{};
  };

  Result<Look> looked(const std::string& cursor, const Names& joined, const Limit& limit) {
    const auto answer = run(look_script, look_arguments(cursor, joined), limit, 0);
    return answer ? look_of(*answer, key_) : answer.error();
  }

  /// Many short calls: between two of them the server answers others. The last one tells what changed meanwhile, so
  /// that all leads are as they stand then. What a limit cuts off, the next look goes on with. A place in a hash means
  /// nothing to another server, nor to the same one after a restart: so all pages come by one connection.
  Result<Look> everything(const Limit& limit) {
    for (;;) {
      if (scan_.connection != commands_.connection()) scan_ = {};
      const auto begun = news_->begin_look();
      const auto answer = run(page_script, {scan_.seen.next}, limit, 0);
      if (!answer) return answer.error();
      auto page = page_of(*answer, key_);
      if (!page) return std::move(page).error();
      if (scan_.seen.next == "0") {
        scan_ = {*std::move(page), commands_.connection()};
        if (scan_.seen.next != "0") continue;
        auto all = std::exchange(scan_, {}).seen.look;
        take(all, begun);
        return all;
      }
      scan_.seen.next = page->next;
      add_leads(scan_.seen.look, std::move(page->look));
      if (scan_.seen.look.leads.size() + scan_.seen.look.unreadable.size() > most_leads) {
        scan_ = {};
        return Error{Fault::unreachable, printable(key_) + ":e has " + group_limit.advice};
      }
      if (scan_.seen.next != "0" || scan_.connection != commands_.connection()) continue;
      auto seen = std::exchange(scan_, {}).seen.look;
      auto now = looked(seen.cursor, {}, limit);
      if (!now) return now;
      if (now->marker != seen.marker || now->cursor.empty() != seen.cursor.empty() || now->whole != seen.cursor.empty())
        continue;
      add_leads(*now, std::move(seen));
      now->whole = true;
      take(*now, begun);
      return now;
    }
  }

  Result<Reply> run(const Script& script, std::vector<std::string> arguments, const Limit& limit, int replicas) {
    return commands_.run({&script, {key_ + ":s", key_ + ":e", key_ + ":log"}, std::move(arguments)},
                         {.replicas = replicas}, limit);
  }

  /// Who says that nothing is ever lost may claim an absent lead at once.
  void take(Look& look, std::uint64_t begun) {
    if (loses_nothing_) look.marker = 0;
    news_->looked(begun);
  }

  /// As of a single election: a claim is made where the Sentinels say just then that the master is. What else the
  /// commit has does not wait for them, or an outage of the Sentinels would end the session.
  bool may_claim(const Commit& commit, const Limit& limit) {
    if (commit.claims.empty()) return false;
    const auto error = commands_.find_master(boot_clock().now(), first_half_of(limit));
    if (!error) return true;
    if (const auto news = repeats_.told(limit.clock.now(), *error))
      warn_("nothing is claimed as long as the Sentinels cannot be asked: " + news->message);
    return false;
  }

  const std::string group_, key_;
  const int replicas_;
  const bool loses_nothing_;
  const Warn warn_;
  Link commands_, notices_;
  const std::shared_ptr<News> news_{std::make_shared<News>()};  ///< Shared with what still runs when we are gone.
  Repeats repeats_;                                             ///< Of why it claims nothing.
  JoinedNames joined_;
  SweepPass pass_;           ///< Of the last sweep, whose place means nothing to another server.
  std::uint64_t pass_by_{};  ///< The connection of that.
  Scan scan_;
};

}  // namespace

std::shared_ptr<GroupStore> open_group(const Options& options, const std::string& group, Log log) {
  auto store = std::make_shared<Group>(options, group, log);
  warn_of_plain_text(options, warnings(std::move(log), "group", group));
  return store;
}

}  // namespace tenure::redis
