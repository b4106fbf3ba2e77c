// SPDX-License-Identifier: Apache-2.0
// What all tests of a process share, such as a server.
#pragma once
#include <gtest/gtest.h>

#include <optional>

namespace tenure::test {

/// What all tests of a process share: made when the first of them asks, and gone before the main program ends or starts
/// itself again, because nothing would remove the files of a server then. `Tag` tells apart several of a type.
template <class T, class Tag = T>
class Shared {
 public:
  template <class... Arguments>
  static T& get(const Arguments&... arguments) {
    if (!keeper_->shared) keeper_->shared.emplace(arguments...);
    return *keeper_->shared;
  }

 private:
  struct Keeper : testing::Environment {
    void TearDown() override { shared.reset(); }
    std::optional<T> shared;
  };
  static inline Keeper* const keeper_ =
      static_cast<Keeper*>(testing::AddGlobalTestEnvironment(new Keeper));  // GoogleTest owns it
};

}  // namespace tenure::test
