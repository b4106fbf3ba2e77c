// SPDX-License-Identifier: Apache-2.0
// What an operator should know of a store before it elects. <tenure/stores.hpp> asks by URL, and so does `tenure
// doctor`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <tenure/kit/same_build.hpp>

namespace tenure {

/// One thing about the server, or about our rights there.
struct Check {
  enum class Is {
    fine,
    doubtful,  ///< It is right for some.
    wrong,     ///< It breaks a promise, or nobody can lead.
  };
  Is is{};
  std::string what{};
  std::string remedy{};  ///< Empty if it is fine.

  /// Each `what` is a statement, and each `remedy` an order, both without a full stop.
  static Check fine(std::string what) { return {Is::fine, std::move(what), {}}; }
  /// The remedy says for whom it is not right.
  static Check doubtful(std::string what, std::string remedy) {
    return {Is::doubtful, std::move(what), std::move(remedy)};
  }
  /// The remedy says what makes it right.
  static Check wrong(std::string what, std::string remedy) { return {Is::wrong, std::move(what), std::move(remedy)}; }
};
using Checks = std::vector<Check>;

}  // namespace tenure
