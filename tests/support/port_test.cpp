// SPDX-License-Identifier: Apache-2.0
// Goal: a port of Port is free, and stays ours as long as the object lives. Method: other sockets try to take it.
#include "port.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "fake_server.hpp"

namespace tenure::test {
namespace {

TEST(Port, IsNobodyElsesUntilItsObjectIsGone) {
  std::optional<Port> mine{std::in_place};
  const auto number = mine->number();
  EXPECT_FALSE(Port::take(number)) << "nothing listens there, but it is taken";
  Port moved = std::move(*mine);
  mine.reset();
  EXPECT_FALSE(Port::take(number));
  moved = {};
  EXPECT_TRUE(Port::take(number));
}

TEST(Port, IsNotOneThatIsListenedTo) {
  const FakeServer server([](const std::string&) -> FakeServer::Answer { throw std::logic_error("nobody asks"); });
  const auto address = server.address();
  EXPECT_FALSE(Port::take(std::stoi(address.substr(address.find(':') + 1))));
}

}  // namespace
}  // namespace tenure::test
