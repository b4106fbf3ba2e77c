// SPDX-License-Identifier: Apache-2.0
// What the tests of Redis share with those of other stores, and what they have besides.
#pragma once
#include <string>

#include <tenure/lock_table.hpp>
#include <tenure/redis.hpp>

#include "fake_server.hpp"
#include "messages.hpp"
#include "store_calls.hpp"
#include "within.hpp"

namespace tenure::redis::test {

using namespace std::chrono_literals;
using tenure::test::canary;
using tenure::test::Lines;
using tenure::test::within;

using tenure::test::error_of;
using tenure::test::expect_error;
using tenure::test::FakeServer;
using tenure::test::read;
using tenure::test::record;
using tenure::test::refused_read;
using tenure::test::refused_swap;
using tenure::test::swap;
using tenure::test::value;

/// The same answer to every command of a batch.
inline std::string to_each(const std::string& request, const std::string& answer) {
  std::string out;
  for (std::size_t at = 0; at != request.npos; at = request.find("\r\n*", at + 1)) out += answer;
  return out;
}

}  // namespace tenure::redis::test
