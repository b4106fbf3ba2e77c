// SPDX-License-Identifier: Apache-2.0
// Goal: a tool that is run again and again leaves nothing behind: no process, no descriptor, no file. Method: thirty
// runs over a file store, and in the long form a thousand.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "run_tool.hpp"

namespace tenure::test {
namespace {

class ManyRuns : public RunTool {
 protected:
  void leave_nothing_behind(int runs);
};

void ManyRuns::leave_nothing_behind(int runs) {
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto files = [](const std::filesystem::path& path) {
    return std::distance(std::filesystem::recursive_directory_iterator(path), {});
  };
  const auto children = tool::children_of(::getpid());  // supervisors of other tests, whom nobody waits for
  const auto open = descriptors(), others = files(files_.path());
  for (int i = 0; i < runs; ++i) ASSERT_EQ(Process(words({}, {"true"})).ended(), 0) << i;
  EXPECT_EQ(tool::children_of(::getpid()), children);
  EXPECT_EQ(descriptors(), open);
  EXPECT_EQ(files(files_.path()), others);
  EXPECT_EQ(files(directory_.path()), 2) << "the election's directory and its last tenure, as after one run";
}

TEST_F(ManyRuns, ThirtyLeaveNothingBehind) { leave_nothing_behind(30); }
TEST_F(ManyRuns, AThousandLeaveNothingBehind) { leave_nothing_behind(1000); }

}  // namespace
}  // namespace tenure::test
