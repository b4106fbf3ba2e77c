// SPDX-License-Identifier: Apache-2.0
// Goal: the journal tells no pause before it began, nor after it ended. Method: a process that writes into the journal
// without a rest.
#include "fleet.hpp"

#include <gtest/gtest.h>

#include <string>

#include "scratch.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

TEST(Fleet, AStopAndItsEndAreNotedWhileTheProcessStandsStill) {
  const Scratch scratch;
  // It counts between two lines, so that it writes more slowly than a sanitized process reads.
  const auto busy = scratch.file("busy",
                                 "#!/bin/sh\n"
                                 "while :; do\n"
                                 "  i=0; while [ $i -lt 20 ]; do i=$((i+1)); done\n"
                                 "  echo '{\"t\":1,\"pid\":1,\"event\":\"lead\"}' >>\"$4\"\n"
                                 "done\n");
  std::filesystem::permissions(busy, std::filesystem::perms::owner_all);
  Fleet fleet(busy, {}, scratch / "journal");
  const auto writer = fleet.start("writer");  // its fourth argument is the journal
  for (int i = 0; i < 200; ++i) {
    const auto began = fleet.events().size();
    ASSERT_NE(fleet.await(began, is("lead"), 10s), Fleet::npos);
    fleet.stop(writer);
    const auto stopped = fleet.events().size() - 1;
    ASSERT_EQ(fleet.events()[stopped].what, done_to::stopped) << "in round " << i;
    fleet.resume(writer);
    ASSERT_NE(fleet.await(stopped + 2, is("lead"), 10s), Fleet::npos);
    ASSERT_EQ(fleet.events()[stopped + 1].what, done_to::resumed) << "in round " << i;
  }
}

}  // namespace
}  // namespace tenure::test
