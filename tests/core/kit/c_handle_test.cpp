// SPDX-License-Identifier: Apache-2.0
// Goal: an object of a C library is freed once, by its own function. Method: a C library of one function, which counts;
// and the C library itself, whose functions have attributes and results.
#include <tenure/kit/c_handle.hpp>

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tenure {
namespace {

struct Thing {
  int freed{};
};
void thing_free(Thing* thing) { ++thing->freed; }
int const_thing_free(const Thing* thing) { return ++const_cast<Thing*>(thing)->freed; }

TEST(CHandle, IsFreedOnceByItsLastOwner) {
  Thing thing;
  {
    CHandle<Thing, thing_free> member;
    {
      auto local = owned<thing_free>(&thing);
      EXPECT_EQ(local.get(), &thing);
      member = std::move(local);
    }
    EXPECT_EQ(thing.freed, 0);
  }
  EXPECT_EQ(thing.freed, 1);
}

TEST(CHandle, OfAConstObjectIsFreedByAFunctionWithAResult) {
  Thing thing;
  owned<const_thing_free>(const_cast<const Thing*>(&thing)).reset();
  EXPECT_EQ(thing.freed, 1);
}

TEST(CHandle, OfANullPointerIsNotFreed) { EXPECT_FALSE(owned<thing_free>(static_cast<Thing*>(nullptr))); }

TEST(CHandle, TakesFunctionsOfTheStandardLibrary) {
  const CHandle<char, std::free> text(static_cast<char*>(std::malloc(1)));
  EXPECT_TRUE(text);
  const auto file = owned<std::fclose>(std::tmpfile());
  EXPECT_TRUE(file);
}

}  // namespace
}  // namespace tenure
