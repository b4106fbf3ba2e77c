// SPDX-License-Identifier: Apache-2.0
// How a resource refuses a leader that is one no more. A leader can be paused between asking whether it leads and the
// write that it then makes; only whoever stores that write can refuse it, by the fencing token that came with it.
// The rule everywhere: a write takes effect if its token is not below the greatest that this resource has seen.
#pragma once
#include <atomic>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/token.hpp>

namespace tenure::fence {

// ---- SQL: the token stands in the row that is written ----

/// "update TABLE set SET, fence = $1 where (WHERE) and fence <= $1", for a table with `fence bigint not null default
/// 0`. Parameter 1 is the token, yours begin at 2; the texts are your program's own SQL, never a user's. One row
/// updated: done; none: a later leader has written (or there is no such row), discard the work. In the row, not in a
/// table of its own: the row's lock then makes check and write one.
inline std::string sql_update(std::string_view table, std::string_view set, std::string_view where) {
  return std::string("update ").append(table).append(" set ").append(set).append(", fence = $1 where (").append(where) +
         ") and fence <= $1";
}

// ---- Redis: the token stands in the hash that is written ----

/// EVAL it with 1 key, the hash, and arguments: token, field, value, field, value... Returns 1: written, 0: a later
/// leader has written. Compares as text, since a Lua number holds 53 bits.
inline constexpr std::string_view redis_hset = R"lua(
local token, seen = ARGV[1], redis.call('HGET', KEYS[1], 'fence') or '0'
if #token < #seen or (#token == #seen and token < seen) then return 0 end
redis.call('HSET', KEYS[1], 'fence', unpack(ARGV))
return 1
)lua";

// ---- HTTP: the token comes with the request ----

inline constexpr std::string_view http_header = "Fencing-Token";

inline std::string http_value(Token token) { return std::to_string(token.value); }

/// Decimal digits and nothing else; nothing for what is no token.
inline std::optional<Token> http_token(std::string_view value) {
  Token token;
  const auto* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, token.value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return token;
}

/// What one resource has seen. Any thread. It lives as long as the process: begin with the token that was stored with
/// the resource, and store the new one with every write.
class Gate {
 public:
  explicit Gate(Token seen = {}) : seen_(seen.value) {}

  bool admit(Token token) noexcept {
    auto seen = seen_.load();
    while (seen < token.value && !seen_.compare_exchange_weak(seen, token.value)) {
    }
    return seen <= token.value;
  }

  Token seen() const noexcept { return {seen_.load()}; }

 private:
  std::atomic<std::uint64_t> seen_;
};

/// The status to refuse a request with: 428 without a token, 400 for what is none, 412 for a leader that is one no
/// more. Nothing: serve it.
inline std::optional<int> http_refusal(const std::optional<std::string_view>& header, Gate& gate) {
  if (!header) return 428;
  const auto token = http_token(*header);
  if (!token) return 400;
  if (!gate.admit(*token)) return 412;
  return std::nullopt;
}

}  // namespace tenure::fence
