// SPDX-License-Identifier: Apache-2.0
// Leads through the new store by each of its schemes, and asks for what its line says that it has, and has not.
#include <stdexcept>
#include <string>
#include <variant>

#include <tenure/stores.hpp>

namespace {

bool leads(const std::string& url, const std::string& election) {
  const auto opened = tenure::open(url, election);
  const auto by = tenure::boot_clock().now() + std::chrono::seconds(10);
  return std::holds_alternative<tenure::Granted>(opened.backend->acquire({tenure::boot_clock(), by, {}}));
}

template <class Ask>
std::string refusal(Ask ask) {
  try {
    ask();
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return {};
}

}  // namespace

int main() {
  const auto lists = refusal([] { tenure::list_elections({.url = "shelf:", .election = "jobs"}); });
  const auto groups = refusal([] { tenure::open_many("shelf:", "jobs"); });
  const bool right = leads("shelf:", "jobs") && leads("shelves:", "others") && lists == "a shelf lists nothing" &&
                     groups.find("the store \"shelf\" keeps no groups") != groups.npos;
  return right ? 0 : 1;
}
