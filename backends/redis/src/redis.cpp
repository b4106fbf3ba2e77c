// SPDX-License-Identifier: Apache-2.0
// The store of one election, the list of elections, and the public functions but open_group(): they check the options
// and put the parts together.
#include <tenure/redis.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenure/conditional_store.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/lock_table.hpp>
#include <tenure/log.hpp>

#include "checkup.hpp"
#include "link.hpp"
#include "options.hpp"
#include "record.hpp"
#include "reply.hpp"
#include "wire.hpp"

namespace tenure::redis {
namespace {

/// The longest time of a read and the claim that follows it. What Sentinels answered longer ago is out of date.
constexpr Clock::Duration longest_attempt = std::chrono::seconds(1);

/// One election's record on a server.
class Store final : public ConditionalStore {
 public:
  /// `candidate` is for CLIENT LIST. It may be empty.
  /// A leader needs no notices, so that connection is made by the first wait.
  Store(const Options& options, const std::string& election, const std::string& candidate, Log log)
      : options_(checked(options)),
        key_(key_of(options, election)),
        client_(client_name(election, candidate)),
        warn_(warnings(std::move(log), "election", election)),
        sentinels_(sentinels_of(options, client_)),
        commands_({options, Connection::Use::commands, client_}, sentinels_, warn_, Link::Made::now),
        notices_({options, Connection::Use::notices, client_}, sentinels_, warn_, Link::Made::when_needed) {}

  Result<Read> read(const Limit& limit) override {
    if (sentinels_) attempt_ = sentinels_->ask();
    const auto answer = commands_.run(call(read_script, {}), {}, limit);
    if (!answer) return answer.error();
    auto found = read_of(*answer, key_);
    if (found) found->absence_certain = options_.first_claim == FirstClaim::at_once;
    return found;
  }

  /// A claim needs a Sentinel's word, during that very attempt, that this is the master. A master that stood still
  /// while it was replaced does not know of it. A renewal needs no such word, or an outage of the Sentinels would end
  /// tenures. For a far store the attempt began with a read, in the call before.
  Result<Swap> compare_and_set(const std::optional<Expected>& expected, const Record& next,
                               const Limit& limit) override {
    const auto now = boot_clock().now();
    const auto attempt = std::max(std::exchange(attempt_, std::nullopt).value_or(now), now - longest_attempt);
    const bool claims = !next.released && (!expected || expected->token != next.token);
    const auto answer = commands_.run(call(swap_script, swap_arguments(expected, next)),
                                      {claims ? attempt : Clock::Time::min(), options_.replicas}, limit);
    if (!answer) return answer.error();
    auto swap = swap_of(*answer, key_);
    if (swap) swap->found.absence_certain = options_.first_claim == FirstClaim::at_once;
    if (swap && swap->applied && claims && !expected && options_.first_claim == FirstClaim::wait)
      warn_("this election has no record yet, or Redis has lost it: its first leader begins a term (" +
            std::to_string(std::chrono::ceil<std::chrono::milliseconds>(next.term).count()) +
            " ms) later. Where no record is ever lost, first_claim=at_once spares that");
    return swap;
  }

  std::optional<Version> await_change(const std::optional<Version>& seen, const Limit& limit) override {
    attempt_.reset();
    const auto news = [seen](const std::string& message) {
      const auto notice = notice_of(message);
      return !notice || notice->version != seen;
    };
    const auto message = notices_.await_message(key_, news, commands_, limit);
    const auto notice = message ? notice_of(*message) : std::nullopt;
    return notice && notice->released ? std::optional(notice->version) : std::nullopt;
  }

  std::optional<Error> request_step_down(const StepDown& request, const Limit& limit) override {
    const auto answer = commands_.run(call(step_down_script, step_down_arguments(request)), {}, limit);
    if (!answer) return answer.error();
    return step_down_kept(*answer, key_);
  }

 private:
  Call call(const Script& script, std::vector<std::string> arguments) const {
    return {&script, {key_}, std::move(arguments)};
  }

  const Options options_;
  const std::string key_, client_;
  const Warn warn_;
  const std::shared_ptr<Sentinels> sentinels_;  ///< Nothing: there are none.
  Link commands_, notices_;
  std::optional<Clock::Time> attempt_;  ///< Since when the Sentinels are asked, of a read that a claim may follow.
};

// ---- the elections of a server ----

/// Some thousand records of less than 1 KiB, each with its key.
constexpr ReplyLimit page_limit{
    64 << 20, 1 << 18, "far more than some thousand records have; remove what somebody else wrote to elections' keys"};

/// In the order of its SCAN.
ElectionList list_of(const Options& options, Log log) {
  const auto client = client_name("(all)", {});
  const Connection::Purpose purpose{checked(options), Connection::Use::commands, client, page_limit};
  const auto link = std::make_shared<Link>(purpose, sentinels_of(options, client),
                                           warnings(std::move(log), "election", "(all)"), Link::Made::now);
  return
      [link, prefix = options.prefix, cursor = std::string("0")](const Limit& limit) mutable -> Result<ElectionPage> {
        const auto answer = link->run({&list_script, {}, list_arguments(prefix, cursor)}, {}, limit);
        if (!answer) return answer.error();
        auto found = found_of(*answer, prefix);
        if (!found) return std::move(found).error();
        const auto now = boot_clock().now();
        ElectionPage page;
        for (auto& [election, read] : found->elections)
          page.elections.push_back(listed(std::move(election), read, now));
        page.last = found->cursor == "0";
        cursor = std::move(found->cursor);
        return page;
      };
}

// ---- public functions ----

#ifdef TENURE_REDIS_TLS
constexpr const char* remedy = "Set Options::tls, or write rediss:// in the URL";
#else
constexpr const char* remedy = "This build has no TLS: let a local TLS proxy such as stunnel carry the connection";
#endif

Options options_of(const Opening& opening) { return tenure::options_of(opening, &from); }

}  // namespace

void warn_of_plain_text(const Options& options, const Warn& warn) {
  if (options.tls) return;
  for (const auto& server : options.servers)
    if (!loopback(server.host)) warn(unprotected("server " + to_string(server), remedy));
}

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<ConditionalStore> store(const Options& options, const std::string& election, Log log) {
  return std::make_shared<Store>(options, election, std::string(), std::move(log));
}

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto store = std::make_shared<Store>(options, election, candidate.name, log);
  warn_of_plain_text(options, warnings(log, "election", election));
  return lock_table(std::move(store), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(options_of(opening), opening.election, opening.candidate, opening.log), presets()};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) { return check_up(options_of(opening), limit); }

ElectionList list_url(const Opening& opening) {
  const auto options = options_of(opening);
  warn_of_plain_text(options, warnings(opening.log, "election", "(all)"));
  return list_of(options, opening.log);
}

OpenedGroup open_group_url(const Opening& opening) {
  return {open_group(options_of(opening), opening.election, opening.log), presets()};
}

}  // namespace tenure::redis
