// SPDX-License-Identifier: Apache-2.0
// Tools that lead, wait and ask, while the password of their store changes and their connections break.
#pragma once
#include <gtest/gtest.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {

/// A new one for each n. It has the canary in it.
inline std::string password_of(int n) { return canary + "-" + std::to_string(n); }

/// The store and the election as words of the command line, for a candidate of this name; "": for who asks only.
using PlaceOf = std::function<std::vector<std::string>(const std::string& id)>;

inline PlaceOf by_options(std::vector<std::string> words) {
  return [words = std::move(words)](const std::string& id) {
    auto all = words;
    if (!id.empty()) all.insert(all.end(), {"--id", id});
    return all;
  };
}

/// password_of(0) holds at `place`. `change(n)` makes password_of(n) the password, in the file as well, and breaks
/// every connection.
inline void expect_password_may_change(const PlaceOf& place, const std::function<void(int)>& change) {
  const auto words = [](std::vector<std::string> all, const std::vector<std::string>& at,
                        const std::vector<std::string>& rest = {}) {
    all.insert(all.end(), at.begin(), at.end());
    all.insert(all.end(), rest.begin(), rest.end());
    return tool(all);
  };
  const std::vector<std::string> lead{"--", "sh", "-c", "echo leads; while :; do sleep 0.01; done"};
  Process leader(words({"run"}, place("ann"), lead));
  ASSERT_TRUE(eventually([&] { return leader.out() == "leads\n"; })) << leader.err();
  Process follower(words({"run"}, place("bob"), lead));
  ASSERT_TRUE(eventually([&] { return mentions(follower.err(), "waits: ann leads"); })) << follower.err();
  for (const int n : {1, 2}) {
    change(n);
    Process status(words({"status"}, place("")));
    EXPECT_EQ(status.ended(), 0) << "no renewal comes: " << status.out() << status.err() << leader.err();
    EXPECT_TRUE(mentions(status.out(), "ann leads")) << status.out();
  }
  EXPECT_EQ(leader.out(), "leads\n") << "its tenure goes on: " << leader.err();
  leader.signal(SIGTERM);
  leader.ended();
  EXPECT_TRUE(eventually([&] { return follower.out() == "leads\n"; })) << follower.err();
  EXPECT_FALSE(mentions(leader.err() + follower.err(), canary)) << leader.err() << follower.err();
}

}  // namespace tenure::test
