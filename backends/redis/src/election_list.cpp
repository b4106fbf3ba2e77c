// SPDX-License-Identifier: Apache-2.0
// Reads the keys of a server page by page.
#include "election_list.hpp"

#include <utility>

#include "handshake.hpp"
#include "options.hpp"
#include "record.hpp"

namespace tenure::redis {
namespace {

/// Some thousand records of less than 1 KiB, each with its key.
constexpr ReplyLimit page_limit{
    64 << 20, 1 << 18, "far more than some thousand records have; remove what somebody else wrote to elections' keys"};

std::shared_ptr<Sentinels> sentinels_of(const Options& options, const std::string& client) {
  return options.master.empty() ? nullptr : std::make_shared<Sentinels>(options, client);
}

}  // namespace

List::List(const Options& options, Log log)
    : options_(checked(options)),
      commands_({options, Connection::Use::commands, client_name("(all)", {}), page_limit},
                sentinels_of(options, client_name("(all)", {})), warnings(std::move(log), "election", "(all)"),
                Link::Made::now) {}

Result<ElectionPage> List::next(const Limit& limit) {
  const auto answer = commands_.run({&list_script, {}, list_arguments(options_.prefix, cursor_)}, {}, limit);
  if (!answer) return answer.error();
  auto found = found_of(*answer, options_.prefix);
  if (!found) return std::move(found).error();
  const auto now = boot_clock().now();
  ElectionPage page;
  for (auto& [election, read] : found->elections) page.elections.push_back(listed(std::move(election), read, now));
  page.last = found->cursor == "0";
  cursor_ = std::move(found->cursor);
  return page;
}

}  // namespace tenure::redis
