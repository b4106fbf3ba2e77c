// SPDX-License-Identifier: Apache-2.0
// What is common to all that we write to a server and read back.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/error.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::redis {

/// Beyond it no clock is right, and a Duration could overflow.
inline constexpr std::int64_t most_unix_ms = std::int64_t{1} << 50;

/// The number, if the text is as we write it.
template <class T>
std::optional<T> exact(std::string_view text) {
  const auto value = number<T>(text);
  return value && std::to_string(*value) == text ? value : std::nullopt;
}

/// What a script of ours cannot have answered. `key`: for messages.
Error no_answer(const std::string& key);

}  // namespace tenure::redis
