// SPDX-License-Identifier: Apache-2.0
// Prints every election of a store.
#include "list.hpp"

#include <algorithm>
#include <iostream>
#include <map>
#include <stdexcept>

#include <tenure/kit/logging.hpp>
#include <tenure/stores.hpp>

#include "durations.hpp"
#include "exit_code.hpp"
#include "look.hpp"
#include "sight.hpp"

namespace tenure::tool {
namespace {

struct All {
  std::map<std::string, ListedElection> rows;  ///< A store may name one twice; what it said last counts.
  bool cut{};                                  ///< There are more.
};

All read_all(ElectionList& list, const Listing& listing) {
  const auto end = boot_clock().now() + listing.patience;
  All all;
  for (bool last = false; !last && !all.cut;) {
    auto page = asked_until(end, [&](const Limit& limit) { return list.next(limit); });
    if (!page) fail(page.error(), unseen);
    last = page->last;
    for (auto& row : page->elections) all.rows.insert_or_assign(row.election, row);
    all.cut = all.rows.size() > listing.most || (all.rows.size() == listing.most && !last);
  }
  while (all.rows.size() > listing.most) all.rows.erase(std::prev(all.rows.end()));
  return all;
}

/// A lapsed lease, and one that was given back, ended some time after the record was written.
std::string row_of(const ListedElection& row, std::size_t width) {
  auto name = printable(row.election);
  name.resize(std::max(name.size(), width), ' ');
  const bool told = !std::holds_alternative<Unknown>(row.sight) && !leader_in(row.sight) && row.age.count() > 0;
  return name + "  " + as_text(row.sight) + (told ? "; last written " + tenths(row.age) + " ago" : "");
}

void print(const All& all, bool json) {
  std::size_t width = 0;
  for (const auto& [name, row] : all.rows) width = std::max(width, printable(name).size());
  for (const auto& [name, row] : all.rows)
    std::cout << (json ? as_json(row.sight, name, {.age = row.age}) : row_of(row, width)) << "\n";
  std::cout.flush();
}

int code_of(const All& all) {
  int code = ok;
  for (const auto& [name, row] : all.rows) code = worse(code, row.sight);
  return code;
}

}  // namespace

int print_all(const Place& place, const Listing& listing) try {
  if (!place.election.empty() || !place.file.empty())
    throw Failed(usage, "--all is for every election of --store; leave out -e and -c");
  auto opening = opening_of(place);
  only_ask(opening);
  opening.log = no_log;
  const auto list = list_elections(opening);
  const auto all = read_all(*list, listing);
  print(all, listing.json);
  if (all.cut)
    std::cerr << "tenure: there are more than " << listing.most << " elections; see them by a greater --limit"
              << std::endl;
  return code_of(all);
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace tenure::tool
