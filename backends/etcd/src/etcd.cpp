// SPDX-License-Identifier: Apache-2.0
// The public functions: they check the options, put the parts together, and list elections.
#include <tenure/etcd.hpp>

#include <memory>
#include <utility>

#include <tenure/kit/call_thread.hpp>
#include <tenure/kit/logging.hpp>
#include <tenure/kit/names.hpp>
#include <tenure/kit/security.hpp>
#include <tenure/lock_table.hpp>

#include "checkup.hpp"
#include "connection.hpp"
#include "options.hpp"

namespace tenure::etcd {
namespace {

/// A record with its key has 4 KiB at most, as an answer has it; and an answer may have 256 KiB.
constexpr std::size_t most_records = 64;

/// The key behind all that begin with this prefix, which ends with a '/'.
std::string behind(std::string prefix) {
  ++prefix.back();
  return prefix;
}

/// Page by page, in the order of their keys.
ElectionList list_of(const Options& given) {
  const auto options = checked(given);
  const auto connection = std::make_shared<Connection>(options);
  const auto commands = std::make_shared<CallThread>(connection);
  const auto end = behind(records_of(options));
  return [=, next = records_of(options)](const Limit& limit) mutable -> Result<ElectionPage> {
    const auto ask = [=, first = next, until = Until(limit)](auto&) -> Result<Page> {
      const auto answer = connection->ask("/v3/kv/range", range(first, end, most_records), until);
      if (!answer) return answer.error();
      auto page = page_of(*answer, first, end);
      if (!page) return Error{Fault::unreachable, "etcd gave an answer that is no part of a list of keys"};
      return *std::move(page);
    };
    const auto page = commands->ask(ask, limit);
    if (!page) return page.error();
    const auto now = boot_clock().now();
    ElectionPage out{.elections = {}, .last = !page->more};
    for (const auto& [key, value] : page->values) {
      auto election = election_of(options, key);
      if (!election) continue;
      auto read = read_of(value, std::nullopt, key);
      if (read) read->now_ms = limit.clock.unix_ms();
      out.elections.push_back(listed(*std::move(election), read, now));
    }
    if (!page->values.empty()) next = page->values.back().first + '\0';
    return out;
  };
}

void warn_of_plain_text(const Options& options, const std::string& election, const Log& log) {
  for (const auto& server : options.servers)
    if (!options.tls && !loopback(server.host))
      tell(log, Level::warning,
           unprotected("member " + to_string(server), "Set Options::tls, or write etcds:// in the URL"),
           {{"election", election}, {"store", "etcd"}});
}

Options options_of(const Opening& opening) { return tenure::options_of(opening, &from); }

}  // namespace

Options from_url(const std::string& url) { return from(parse_url(url)); }

std::shared_ptr<Backend> open(const Options& options, const std::string& election, Candidate candidate, Log log) {
  candidate = checked(std::move(candidate));
  auto made = store(options, election, log);
  warn_of_plain_text(options, election, log);
  return lock_table(std::move(made), election, std::move(candidate), std::move(log));
}

Presets presets() { return lock_table_presets(); }

Opened open_url(const Opening& opening) {
  return {open(options_of(opening), opening.election, opening.candidate, opening.log), presets()};
}

Result<Checks> check_url(const Opening& opening, const Limit& limit) {
  return check_up(options_of(opening), opening.election, limit);
}

ElectionList list_url(const Opening& opening) {
  const auto options = options_of(opening);
  auto list = list_of(options);
  warn_of_plain_text(options, "(all)", opening.log);
  return list;
}

}  // namespace tenure::etcd
