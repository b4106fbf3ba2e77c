// SPDX-License-Identifier: Apache-2.0
// Goal: the shim steps the wall clock of another program while that runs. Method: bash, which tells the time without
// starting anything, is asked before and after each step.
#include "clock_shim.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "scratch.hpp"

namespace tenure::test {
namespace {

using namespace std::chrono_literals;

/// Tells its wall clock in seconds whenever it is asked.
class Program {
 public:
  explicit Program(const ClockShim& shim, const std::string& directory) : questions_(directory + "/questions") {
    if (std::system(("mkfifo '" + questions_ + "'").c_str()) != 0) throw std::runtime_error("mkfifo");
    std::string command = "env";
    for (const auto& variable : shim.environment()) command += " '" + variable + "'";
    command += " bash -c 'while read -r; do printf \"%(%s)T\\n\" -1; done' <'" + questions_ + "'";
    answers_.reset(::popen(command.c_str(), "r"));
    ask_.reset(std::fopen(questions_.c_str(), "w"));
  }

  long long seconds() {
    std::fputs("?\n", ask_.get());
    std::fflush(ask_.get());
    std::array<char, 64> line{};
    return std::fgets(line.data(), line.size(), answers_.get()) ? std::atoll(line.data()) : 0;
  }

 private:
  const std::string questions_;
  std::unique_ptr<FILE, int (*)(FILE*)> answers_{nullptr, ::pclose}, ask_{nullptr, std::fclose};
};

TEST(ClockShim, StepsTheWallClockOfARunningProgramThereAndBack) {
  const Scratch scratch;
  ClockShim shim(scratch.path());
  Program program(shim, scratch.path());
  const auto near = [&](Clock::Duration off) {
    const auto ours = boot_clock().unix_ms() / 1000 + std::chrono::floor<std::chrono::seconds>(off).count();
    return std::abs(program.seconds() - ours) <= 2;
  };
  EXPECT_TRUE(near(0s));
  shim.step(1h);
  EXPECT_TRUE(near(1h));
  shim.step(-2h);
  EXPECT_TRUE(near(-1h));
  shim.step(1h);
  EXPECT_TRUE(near(0s));
}

}  // namespace
}  // namespace tenure::test
