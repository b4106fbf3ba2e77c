// SPDX-License-Identifier: Apache-2.0
// How a resource refuses a former leader. A leader can be paused after it asked whether it leads, and before it writes.
// Then only the resource that stores the write can refuse it, by the fencing token that came with it. The rule is the
// same everywhere: a write takes effect if its token is not below the greatest one that the resource has seen.
#pragma once
#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <tenure/token.hpp>

namespace tenure::fence {

// ---- SQL: the token is stored in the row that is written ----

/// "update TABLE set SET, fence = $1 where (WHERE) and fence <= $1", for a table with a column
/// `fence bigint not null default 0`. Parameter 1 is the token, your own parameters begin at 2.
/// If no row was updated, a later leader has written (or there is no such row): discard the work. The token must stand
/// in the row itself, because the row's lock makes one step of the check and the write.
/// REQUIRES: the texts are your program's own SQL, and never come from a user.
inline std::string sql_update(std::string_view table, std::string_view set, std::string_view where) {
  return std::string("update ").append(table).append(" set ").append(set).append(", fence = $1 where (").append(where) +
         ") and fence <= $1";
}

// ---- Redis: the token is stored in the hash that is written ----

/// A script for EVAL with 1 key, the hash, and the arguments token, field, value, field, value... It returns 1 if it
/// has written, and 0 if a later leader has. It compares tokens as text, because a Lua number holds only 53 bits.
inline constexpr std::string_view redis_hset = R"lua(
local token, seen = ARGV[1], redis.call('HGET', KEYS[1], 'fence') or '0'
if #token < #seen or (#token == #seen and token < seen) then return 0 end
redis.call('HSET', KEYS[1], 'fence', unpack(ARGV))
return 1
)lua";

// ---- etcd: the token is stored in a key beside those that are written ----

/// The value of a key that has the token, for a transaction like this one:
///   compare   value("total/fence") > etcd_value(token)
///   success   nothing: a later leader has written, so discard the work
///   failure   put "total/fence" etcd_value(token), and your own puts
/// A comparison of a key that does not exist is never true, so that the first write needs no preparation. It has 20
/// digits always, because etcd compares values as text.
inline std::string etcd_value(Token token) {
  const auto digits = std::to_string(token.value);
  return std::string(20 - digits.size(), '0') + digits;
}

// ---- HTTP: the token comes with the request ----

inline constexpr std::string_view http_header = "Fencing-Token";

/// What the header says of this token.
inline std::string http_value(Token token) { return std::to_string(token.value); }

/// The token, if the header's value consists of decimal digits alone and fits.
inline std::optional<Token> http_token(std::string_view value) {
  Token token;
  const auto* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, token.value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return token;
}

/// Remembers the greatest token that one resource has seen. Any thread may call any method. It forgets when the process
/// ends, so begin with the token that was stored with the resource, and store the new one with every write.
class Gate {
 public:
  /// `seen` is the token that was stored with the resource.
  explicit Gate(Token seen = {}) : seen_(seen.value) {}

  /// Admits and writes in one step, one write at a time. False: a later leader has written, and nothing was done.
  template <class Write>
  bool admit(Token token, Write write) {
    const std::lock_guard lock(writing_);
    if (!admit(token)) return false;
    write();
    return true;
  }

  /// Whether a write with this token may take effect. Remembers the token if it is the greatest.
  /// REQUIRES: one lock of yours is held from here until the write has ended. Else a former leader's write that was
  /// admitted before lands after its successor's.
  bool admit(Token token) noexcept {
    auto seen = seen_.load();
    while (seen < token.value && !seen_.compare_exchange_weak(seen, token.value)) {
    }
    return seen <= token.value;
  }

  /// The greatest token so far.
  Token seen() const noexcept { return {seen_.load()}; }

 private:
  std::atomic<std::uint64_t> seen_;
  std::mutex writing_;
};

/// The status by which to refuse a request: 428 if it has no token, 400 if the header is not a token, 412 if a later
/// leader has written. Nothing if the request may be served. REQUIRES: as Gate::admit() of a token alone.
inline std::optional<int> http_refusal(const std::optional<std::string_view>& header, Gate& gate) {
  if (!header) return 428;
  const auto token = http_token(*header);
  if (!token) return 400;
  if (!gate.admit(*token)) return 412;
  return std::nullopt;
}

}  // namespace tenure::fence
