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

/// A lapsed lease, and one that was given back, ended some time after the record was written.
Row row_of(const ListedElection& of) {
  const bool told = !std::holds_alternative<Unknown>(of.sight) && !leader_in(of.sight) && of.age.count() > 0;
  return {of.election,
          of.sight,
          told ? "; last written " + seconds(of.age - of.age % std::chrono::milliseconds(100)) + " ago" : "",
          {.age = of.age}};
}

/// One more than are asked for, if there are.
std::vector<Row> read_all(const ElectionList& list, const Listing& listing) {
  const auto end = boot_clock().now() + listing.patience;
  std::map<std::string, Row> rows;  // A store may name one twice; what it said last counts.
  for (bool last = false; !last && rows.size() <= listing.most;) {
    auto page = asked_until(end, [&](const Limit& limit) { return list(limit); });
    if (!page) fail(page.error(), unseen);
    last = page->last;
    for (const auto& one : page->elections) rows.insert_or_assign(one.election, row_of(one));
  }
  std::vector<Row> out;
  out.reserve(rows.size());
  for (auto& [name, row] : rows) out.push_back(std::move(row));
  return out;
}

}  // namespace

void print(const std::vector<Row>& rows, const Listing& listing) {
  const auto shown = std::min(rows.size(), listing.most);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, printable(rows[i].election).size());
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& row = rows[i];
    auto name = printable(row.election);
    name.resize(width, ' ');
    std::cout << (listing.json ? as_json(row.sight, row.election, row.about)
                               : name + "  " + as_text(row.sight) + row.remark)
              << "\n";
  }
  std::cout.flush();
  if (rows.size() > shown)
    std::cerr << "tenure: there are more than " << shown << " elections; see them by a greater --limit" << std::endl;
}

int code_of(const std::vector<Row>& rows) {
  int code = ok;
  for (const auto& row : rows) code = worse(code, row.sight);
  return code;
}

int print_all(const Place& place, const Listing& listing) try {
  refuse_given(place, {"-e", "-c", "--timing", "--term"},
               "does not go with --all, which is for every election of --store");
  auto opening = opening_of(place);
  only_ask(opening);
  opening.log = no_log;
  const auto list = list_elections(opening);
  auto rows = read_all(list, listing);
  print(rows, listing);
  rows.resize(std::min(rows.size(), listing.most));
  return code_of(rows);
} catch (const std::invalid_argument& e) {
  throw Failed(misconfigured, e.what());
}

}  // namespace tenure::tool
