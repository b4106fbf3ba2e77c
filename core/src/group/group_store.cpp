// SPDX-License-Identifier: Apache-2.0
#include <tenure/group_store.hpp>

#include <tenure/kit/wait.hpp>

namespace tenure {

std::optional<Release> GroupStore::await_change(const std::string&, const Limit& limit) {
  wait_out(limit);
  return std::nullopt;
}

std::optional<Error> GroupStore::accepts(const Timing&) { return std::nullopt; }

}  // namespace tenure
