// SPDX-License-Identifier: Apache-2.0
// What a server is asked and what it answered, as values, and what its refusals mean. Pure.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/error.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/redis.hpp>

namespace tenure::redis {

/// A Lua script. Constant text: keys and everything else come by argument. `sha1` is the server's name for it.
struct Script {
  std::string_view text, sha1;
};

struct Reply {
  enum class Kind { nil, error, text, integer, list };
  Kind kind{};
  std::string text{};  ///< The words of an error or a text.
  long long integer{};
  std::vector<Reply> list{};

  bool is_error() const { return kind == Kind::error; }
};

/// "WRONGTYPE" of "WRONGTYPE Operation against..."; Redis 6 puts a script's own error behind words of its own.
std::string_view code_of(std::string_view error);

/// Says what a server's error means, with the remedy. `where` is like "redis 127.0.0.1:6379", `command` is what was
/// sent. If `quote` is true, words of the error may be repeated. Some servers repeat what they were sent, so it is
/// false where that was a password.
Error explained(std::string_view error, const std::string& where, bool quote, std::string_view command = {});

/// Returns the value of "name:value\r\n" in INFO's answer.
std::string_view info_field(std::string_view info, std::string_view name);

// ---- what we wrote ourselves ----

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

// ---- where a server is ----

std::optional<int> port_of(std::string_view text);

/// Where a cluster sends us.
struct Redirection {
  Address to;
  bool ask{};  ///< It holds for this command only, because the slot is still on its way there.
};
/// `from` is the server that said so. It is meant if no host is named.
std::optional<Redirection> redirection(const Reply& reply, const std::string& from);

}  // namespace tenure::redis
