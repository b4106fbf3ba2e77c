// SPDX-License-Identifier: Apache-2.0
// Reads the keys of a cluster page by page.
#include <memory>
#include <utility>

#include <tenure/kit/call_thread.hpp>

#include "checkup.hpp"
#include "connection.hpp"
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

}  // namespace tenure::etcd
