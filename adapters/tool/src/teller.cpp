// SPDX-License-Identifier: Apache-2.0
#include "teller.hpp"

#include <utility>

#include <tenure/kit/logging.hpp>

namespace tenure::tool {

Teller::Teller(ServiceManager& manager, Log log, std::string election)
    : manager_(manager), log_(std::move(log)), election_(std::move(election)) {}

void Teller::say(const std::string& what, Level level) const { tell(log_, level, what, {{"election", election_}}); }

void Teller::waits(const std::string& what) {
  manager_.status(what);
  if (std::exchange(last_, what) != what) say(what);
}

void Teller::is(const std::string& what) {
  manager_.status(what);
  last_.clear();
}

}  // namespace tenure::tool
