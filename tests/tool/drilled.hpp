// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "messages.hpp"
#include "process.hpp"

namespace tenure::test {

/// A drill that has ended. On a busy machine the members may lose the lead without any fault of the drill. Then it has
/// measured nothing, and is tried again.
inline std::unique_ptr<Process> drilled(const std::vector<std::string>& words) {
  for (int tries = 1;; ++tries) {
    auto drill = std::make_unique<Process>(tool(words));
    EXPECT_TRUE(eventually([&] { return !drill->running(); }, std::chrono::minutes(3)));
    if (tries == 3 || !mentions(drill->err(), "lost the lead again and again")) return drill;
  }
}

/// It has measured each fault. A busy machine may keep the members from keeping the promise of time.
inline void expect_each_fault(Process& drill) {
  const auto code = drill.ended();
  EXPECT_TRUE(code == 0 || (code == 1 && mentions(drill.out(), "NOT KEPT"))) << drill.out() << drill.err();
  for (const auto* fault : {"\nkilled ", "\nstopped ", "\ncut off ", "\nended "})
    EXPECT_TRUE(mentions(drill.out(), fault)) << drill.out();
}

}  // namespace tenure::test
