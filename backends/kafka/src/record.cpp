// SPDX-License-Identifier: Apache-2.0
// Writes and reads the text of a commit, with suspicion.
#include "record.hpp"

#include <vector>

#include <tenure/candidate.hpp>
#include <tenure/kit/text.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/timing.hpp>

namespace tenure::kafka {
namespace {

/// "v" and a number from 1 up.
std::optional<unsigned> version_of(std::string_view field) {
  if (field.size() < 2 || field[0] != 'v' || field[1] == '0') return std::nullopt;
  return number<unsigned>(field.substr(1));
}

/// At most so many: the last one is all the rest.
std::vector<std::string_view> fields_of(std::string_view text, std::size_t most) {
  std::vector<std::string_view> fields;
  while (fields.size() + 1 < most && text.find(';') != text.npos) {
    fields.push_back(text.substr(0, text.find(';')));
    text.remove_prefix(fields.back().size() + 1);
  }
  fields.push_back(text);
  return fields;
}

std::string mode_of(const Record& r) {
  if (r.exclusive == Exclusive::yes) return "E";
  return r.leads ? "L" : "C";
}

}  // namespace

std::string encode(const Record& r) {
  // Rounded up: followers must not wait less than the holder counts on.
  const auto lease = std::chrono::ceil<std::chrono::milliseconds>(r.lease).count();
  return std::string("v1;") + (r.released ? "R;" : "A;") + std::to_string(lease) + ";" + std::to_string(r.seq) + ";" +
         std::to_string(r.units) + ";" + mode_of(r) + ";" + std::to_string(r.grown_from) + ";" + who_text(r.who);
}

std::optional<Record> decode(std::string_view metadata) {
  if (metadata.size() > max_record_bytes || metadata.find('\0') != metadata.npos) return std::nullopt;
  const auto fields = fields_of(metadata, 8);
  const auto version = version_of(fields[0]);
  if (!version || fields.size() < 3 || (fields[1] != "A" && fields[1] != "R")) return std::nullopt;
  const auto lease_ms = number<std::uint32_t>(fields[2]);
  if (!lease_ms || *lease_ms == 0 || std::chrono::milliseconds(*lease_ms) > max_term) return std::nullopt;
  Record out{.released = fields[1] == "R", .lease = std::chrono::milliseconds(*lease_ms)};
  if (*version > 1) return out;

  if (fields.size() != 8) return std::nullopt;
  const auto seq = number<std::uint64_t>(fields[3]);
  const auto units = number<std::uint16_t>(fields[4]);
  const auto grown_from = number<std::uint16_t>(fields[6]);
  auto who = read_who(fields[7]);
  if (!seq || !units || !grown_from || !who || who->incarnation.empty()) return std::nullopt;
  out.seq = *seq;
  out.who = std::move(*who);
  out.units = *units;
  out.exclusive = fields[5] == "E" ? Exclusive::yes : Exclusive::no;
  out.leads = fields[5] == "L";
  out.grown_from = *grown_from;
  // No version writes that several lead a single election, or that it has grown.
  if (fields[5] != mode_of(out) || (*units == 0 && (fields[5] != "E" || *grown_from > 0))) return std::nullopt;
  return out;
}

std::string encode(const StepDown& r) { return "v1;" + percent_encoded(r.by) + ";" + percent_encoded(r.why); }

std::optional<StepDown> decode_step_down(Token offset, std::string_view metadata) {
  const auto fields = fields_of(metadata.substr(0, 4096), 4);
  if (fields.size() != 3 || fields[0] != "v1") return std::nullopt;
  auto by = percent_decoded(fields[1], max_candidate_bytes);
  auto why = percent_decoded(fields[2], max_why_bytes);
  if (!by || !why) return std::nullopt;
  return StepDown{offset, std::move(*by), std::move(*why)};
}

}  // namespace tenure::kafka
