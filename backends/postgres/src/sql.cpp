// SPDX-License-Identifier: Apache-2.0
// Fills in statements, and writes and reads values.
#include "sql.hpp"

#include <algorithm>

#include <tenure/kit/text.hpp>

namespace tenure::postgres {

std::string filled(std::string_view statement, const Parts& parts) {
  std::string out(statement.substr(statement.starts_with('\n') ? 1 : 0));
  for (const auto& [name, text] : parts)
    for (auto at = out.find(name); at != out.npos; at = out.find(name, at + text.size()))
      out.replace(at, name.size(), text);
  return out;
}

std::string filled_sql(std::string_view statement, const Parts& parts) {
  static const Parts operators = [] {
    Parts out;
    for (const std::string_view one : {"{=}", "{<>}", "{<}", "{<=}", "{>}", "{>=}", "{||}", "{*}", "{-}", "{+}"})
      out.emplace_back(one, "operator(pg_catalog." + std::string(one.substr(1, one.size() - 2)) + ')');
    return out;
  }();
  return filled(filled(statement, parts), operators);
}

std::string hex_of(std::string_view column) {
  return filled("case when pg_catalog.octet_length({column}) {<=} 1000 then pg_catalog.encode({column}, 'hex') end",
                {{"{column}", std::string(column)}});
}

std::string hex_of_text(std::string_view column) {
  return hex_of("pg_catalog.convert_to(" + std::string(column) + ", pg_catalog.getdatabaseencoding())");
}

/// A write waits until it is on disk, whatever the session says. Only {may_be_lost} need not.
const std::string_view with_settings = R"(with s as materialized (
  select pg_catalog.set_config('lock_timeout', {lock_wait}, true) as lock_timeout,
    pg_catalog.set_config('synchronous_commit',
      case when {may_be_lost} then 'off'
        when pg_catalog.current_setting('synchronous_commit') {=} 'off' then 'on'
        else pg_catalog.current_setting('synchronous_commit') end, true) as synchronous_commit))";

const std::string_view settings_hold = "s.lock_timeout is not null and s.synchronous_commit is not null";

/// Columns that an index only includes are no part of its key.
std::string in_a_key(std::string_view column) {
  return filled(R"(exists (
  select from pg_catalog.pg_index as i join pg_catalog.pg_attribute as a on a.attrelid {=} i.indrelid
  where i.indrelid {=} c.oid and a.attname {=} '{column}'::pg_catalog.name
    and a.attnum {=} any ((i.indkey::pg_catalog.int2[])[0:i.indnkeyatts {-} 1])
    and i.indisunique and i.indislive and i.indpred is null and i.indexprs is null))",
                {{"{column}", std::string(column)}});
}

std::string lock_wait(Clock::Time until) {
  const auto wait = (until - boot_clock().now()) / 2;
  return std::to_string(std::max<std::int64_t>(wait / std::chrono::milliseconds(1), 1));
}

std::string bigint(std::uint64_t value) { return std::to_string(static_cast<std::int64_t>(value)); }

std::string bytea(std::string_view bytes) { return "\\x" + hex(bytes); }

std::string bigints(const std::vector<std::uint64_t>& values) {
  std::string out = "{";
  for (const auto value : values) out += (out.size() > 1 ? "," : "") + bigint(value);
  return out + '}';
}

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (; hex.size() > 1; hex.remove_prefix(2))
    out += static_cast<char>(number<unsigned char>(hex.substr(0, 2), 16).value_or(0));
  return out;
}

std::uint64_t unsigned_of(const pqxx::field& field) { return static_cast<std::uint64_t>(field.as<std::int64_t>(0)); }

}  // namespace tenure::postgres
