// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/timing.hpp>

namespace tenure::kafka {
namespace {

constexpr std::size_t max_incarnation_bytes = 64;

/// "v" and a number from 1 up.
std::optional<unsigned> version_of(std::string_view field) {
  if (field.size() < 2 || field[0] != 'v' || field[1] == '0') return std::nullopt;
  return number<unsigned>(field.substr(1));
}

std::vector<std::string_view> fields_of(std::string_view text) {
  std::vector<std::string_view> fields;
  for (;;) {
    const auto end = text.find(';');
    fields.push_back(text.substr(0, end));
    if (end == text.npos) return fields;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string encode(const Record& r) {
  const bool shared = r.exclusive == Exclusive::no;
  // Rounded up: followers must not wait less than the holder counts on.
  const auto lease = std::chrono::ceil<std::chrono::milliseconds>(r.lease).count();
  return std::string(shared         ? "v3;"
                     : r.grown_from ? "v4;"
                     : r.units      ? "v2;"
                                    : "v1;") +
         std::string(r.released ? "R" : "A") + ";" + std::to_string(lease) + ";" + percent_encoded(r.incarnation) +
         ";" + std::to_string(r.seq) + ";" + percent_encoded(r.name) + ";" + percent_encoded(r.address) +
         (r.units ? ";" + std::to_string(r.units) : "") + (shared ? (r.leads ? ";L" : ";C") : "") +
         (!shared && r.grown_from ? ";" + std::to_string(r.grown_from) : "");
}

std::optional<std::string> too_long(Record r) {
  r.lease = max_term;
  r.incarnation = std::string(32, 'f');
  r.seq = ~std::uint64_t{0};
  const auto size = encode(r).size();
  if (size <= max_record_bytes) return std::nullopt;
  return "name and address take " + std::to_string(size) + " bytes in the record; " + std::to_string(max_record_bytes) +
         " are allowed (a byte outside a-z A-Z 0-9 - . _ ~ : / @ [ ] takes three). Shorten them";
}

std::optional<Record> decode(std::string_view metadata) {
  if (metadata.size() > max_record_bytes || metadata.find('\0') != metadata.npos) return std::nullopt;
  const auto fields = fields_of(metadata);
  const auto version = version_of(fields[0]);
  if (!version || fields.size() < 3 || (fields[1] != "A" && fields[1] != "R")) return std::nullopt;
  const auto lease_ms = number<std::uint32_t>(fields[2]);
  if (!lease_ms || *lease_ms == 0 || std::chrono::milliseconds(*lease_ms) > max_term) return std::nullopt;
  Record out;
  out.released = fields[1] == "R";
  out.lease = std::chrono::milliseconds(*lease_ms);
  static constexpr std::size_t counts[] = {0, 7, 8, 9, 9};  // Of the fields, by version.
  if (*version > 4 || (*version > 1 && fields.size() != counts[*version])) return out;

  if (*version == 1 && fields.size() != counts[1]) return std::nullopt;
  if (*version == 3) {
    if (fields[8] != "L" && fields[8] != "C") return std::nullopt;
    out.exclusive = Exclusive::no;
    out.leads = fields[8] == "L";
  }
  const auto count = [&](std::size_t field) {  // Of units: no version writes that there are none.
    const auto read = number<int>(fields[field]);
    return read && *read > 0 ? read : std::nullopt;
  };
  const auto units = *version == 1 ? std::optional(0) : count(7);
  const auto grown_from = *version == 4 ? count(8) : std::optional(0);
  auto incarnation = percent_decoded(fields[3], max_incarnation_bytes);
  const auto seq = number<std::uint64_t>(fields[4]);
  auto name = percent_decoded(fields[5], max_candidate_bytes);
  auto address = percent_decoded(fields[6], max_candidate_bytes);
  if (!incarnation || !seq || !name || !address || !units || !grown_from) return std::nullopt;
  out.incarnation = std::move(*incarnation);
  out.seq = *seq;
  out.name = std::move(*name);
  out.address = std::move(*address);
  out.units = *units;
  out.grown_from = *grown_from;
  return out;
}

std::string encode(const StepDown& r) { return "v1;" + percent_encoded(r.by) + ";" + percent_encoded(r.why); }

std::optional<StepDown> decode_step_down(Token offset, std::string_view metadata) {
  const auto fields = fields_of(metadata.substr(0, 4096));
  if (fields.size() != 3 || fields[0] != "v1") return std::nullopt;
  auto by = percent_decoded(fields[1], max_candidate_bytes);
  auto why = percent_decoded(fields[2], max_why_bytes);
  if (!by || !why) return std::nullopt;
  return StepDown{offset, std::move(*by), std::move(*why)};
}

}  // namespace tenure::kafka
