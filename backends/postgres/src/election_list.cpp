// SPDX-License-Identifier: Apache-2.0
// Reads the rows of the table page by page.
#include <memory>

#include "checkup.hpp"
#include "client.hpp"
#include "statements.hpp"

namespace tenure::postgres {
namespace {

constexpr std::size_t page = 500;

Result<ElectionPage> read_page(Connection& connection, const std::string& after) {
  const auto rows = connection.execute(listing(after, page));
  const auto now = boot_clock().now();
  ElectionPage out{.elections = {}, .last = static_cast<std::size_t>(rows.size()) < page};
  for (const auto& row : rows) out.elections.push_back(listed(election_of(row), read_of(row), now));
  return out;
}

}  // namespace

/// Every election has another channel, and no election is called "", so nothing is ever heard.
ElectionList list_of(const Settings& settings) {
  const auto client = std::make_shared<Client>(settings, Purpose{.name = {}});
  return [client, last = std::string()](const Limit& limit) mutable {
    auto found = client->ask<ElectionPage>(
        [after = bytea(last)](Connection& connection) { return read_page(connection, after); }, limit);
    if (found && !found->elections.empty()) last = found->elections.back().election;
    return found;
  };
}

}  // namespace tenure::postgres
