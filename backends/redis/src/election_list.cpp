// SPDX-License-Identifier: Apache-2.0
// Reads the keys of a server page by page.
#include <memory>
#include <utility>

#include "checkup.hpp"
#include "handshake.hpp"
#include "link.hpp"
#include "options.hpp"
#include "record.hpp"

namespace tenure::redis {
namespace {

/// Some thousand records of less than 1 KiB, each with its key.
constexpr ReplyLimit page_limit{
    64 << 20, 1 << 18, "far more than some thousand records have; remove what somebody else wrote to elections' keys"};

}  // namespace

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

}  // namespace tenure::redis
