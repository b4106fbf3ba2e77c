// SPDX-License-Identifier: Apache-2.0
// Reads the keys of a cluster page by page.
#include "election_list.hpp"

#include <utility>

#include "record.hpp"

namespace tenure::etcd {
namespace {

/// A record with its key has 4 KiB at most, as an answer has it; and an answer may have 256 KiB.
constexpr std::size_t most_records = 64;

/// The key behind all that begin with this prefix, which ends with a '/'.
std::string behind(std::string prefix) {
  ++prefix.back();
  return prefix;
}

}  // namespace

List::List(const Options& options)
    : options_(checked(options)),
      next_(records_of(options)),
      connection_(std::make_shared<Connection>(options)),
      commands_(connection_) {}

Result<ElectionPage> List::next(const Limit& limit) {
  const auto ask = [connection = connection_, first = next_, before = behind(records_of(options_)),
                    until = Until(limit)](auto&) -> Result<Page> {
    const auto answer = connection->ask("/v3/kv/range", range(first, before, most_records), until);
    if (!answer) return answer.error();
    auto page = page_of(*answer, first, before);
    if (!page) return Error{Fault::unreachable, "etcd gave an answer that is no part of a list of keys"};
    return *std::move(page);
  };
  const auto page = commands_.ask(ask, limit);
  if (!page) return page.error();
  const auto now = boot_clock().now();
  ElectionPage out{.elections = {}, .last = !page->more};
  for (const auto& [key, value] : page->values) {
    auto election = election_of(options_, key);
    if (!election) continue;
    auto read = read_of(value, std::nullopt, key);
    if (read) read->now_ms = limit.clock.unix_ms();
    out.elections.push_back(listed(*std::move(election), read, now));
  }
  if (!page->values.empty()) next_ = page->values.back().first + '\0';
  return out;
}

}  // namespace tenure::etcd
