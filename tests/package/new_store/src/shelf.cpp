// SPDX-License-Identifier: Apache-2.0
// A store that package.new_store adds to the house.
#include <tenure/shelf.hpp>

#include <stdexcept>

#include <tenure/lock_table.hpp>

#include "shelf.hpp"

namespace tenure::shelf {

Opened open_url(const Opening& opening) {
  static const auto one = std::make_shared<Shelf>();
  const auto store = std::make_shared<ShelfStore>(one, opening.election);
  return {lock_table(store, opening.election, opening.candidate, opening.log), lock_table_presets()};
}

ElectionList list_url(const Opening&) { throw std::invalid_argument("a shelf lists nothing"); }

}  // namespace tenure::shelf
