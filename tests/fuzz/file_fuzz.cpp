// SPDX-License-Identifier: Apache-2.0
// A tenure's file: what is read and is written again is read the same. A name of a directory: each election has its
// own, below the directory of all, and only what we made of a name is taken for one.
#include <variant>

#include <tenure/kit/who.hpp>

#include "directory.hpp"
#include "fuzz.hpp"
#include "image.hpp"

namespace tenure::fuzz {
namespace {

void image(const std::string& text) {
  const auto read = file::decode(text);
  const auto* found = std::get_if<file::Decoded>(&read);
  if (!found) return;
  const auto written = file::encode(found->record, found->election, found->origin);
  require(bool(written), "what was read fits a file");
  const auto again = file::decode({reinterpret_cast<const char*>(&*written), sizeof *written});
  require(std::holds_alternative<file::Decoded>(again), "what is written is read");
  require(std::get<file::Decoded>(again).record == found->record, "it is the same record");
}

/// The text as a record's texts, whole and with one byte changed.
void written_image(const std::string& text) {
  Lines lines(text);
  Record record;
  record.token = {lines.number<std::uint64_t>()};
  record.term = std::chrono::milliseconds(lines.number<std::uint32_t>());
  const auto at = lines.number<std::size_t>();
  record.who = lines.next().substr(0, max_who_bytes);
  const auto whole =
      file::encode(record, lines.rest().substr(0, max_election_bytes), {std::string(36, 'b'), 1, {2, 3}});
  std::string bytes(reinterpret_cast<const char*>(&*whole), sizeof *whole);
  require(std::get<file::Decoded>(file::decode(bytes)).record == record, "what is written is read");
  auto& changed = bytes[at % bytes.size()];
  changed = static_cast<char>(changed ^ 0x10);
  image(bytes);
}

void names(const std::string& text) {
  const auto pieces = file::encoded(text);
  require(pieces.size() <= file::most_pieces || text.size() > max_election_bytes, "a name has few pieces");
  for (const auto& piece : pieces)
    require(piece.size() <= 255 && piece != "." && piece != ".." && !contains(piece, "/") && printable_text(piece),
            "a piece is a name of its own");
  require(text.size() > max_election_bytes || file::decoded(pieces) == text, "what is encoded is decoded");
  std::vector<std::string> found;
  for (Lines lines(text); !lines.empty();) found.push_back(lines.next());
  if (const auto name = file::decoded(found)) require(file::encoded(*name) == found, "two directories are two names");
}

}  // namespace

const std::vector<Target> targets{{"file_image", image}, {"file_written", written_image}, {"file_names", names}};

}  // namespace tenure::fuzz
