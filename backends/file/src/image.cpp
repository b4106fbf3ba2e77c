// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the bytes of a tenure's file.
#include "image.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include <tenure/kit/store.hpp>
#include <tenure/kit/text.hpp>

namespace tenure::file {
namespace {

using std::chrono::ceil;
using std::chrono::milliseconds;

constexpr std::uint64_t magic = 0x0a31'6572'756e'6574ULL;  // "tenure1\n" in little-endian memory
constexpr std::uint64_t release_mask = 0x7465'6e75'7265'2121ULL;

template <std::size_t n>
bool put(Text<n>& field, std::string_view text) {
  if (text.size() > n) return false;
  field.size = static_cast<std::uint16_t>(text.size());
  std::memcpy(field.bytes, text.data(), text.size());
  return true;
}

template <std::size_t n>
bool get(const Text<n>& field, std::string& out) {
  if (field.size > n) return false;
  out.assign(field.bytes, field.size);
  return true;
}

std::string_view bytes_of(const auto& value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

std::uint64_t sum_of_fixed(Image image) {
  image.released = 0;
  image.beat = {};
  image.sum = 0;
  return fnv1a(bytes_of(image));
}

std::uint64_t sum_of_beat(Beat beat, FileId file) {
  beat.sum = 0;
  return fnv1a(bytes_of(beat), fnv1a(bytes_of(file.inode)));
}

Error too_long(const char* field, std::size_t given, std::size_t most) {
  return {Fault::misconfigured, std::string("the ") + field + " has " + std::to_string(given) +
                                    " bytes; a tenure's file has room for " + std::to_string(most)};
}

}  // namespace

std::uint64_t encode_release(std::uint64_t beat) { return beat ^ release_mask; }

Beat encode_beat(const Record& record, const Origin& origin) {
  Beat beat{record.beat, record.asked.count(), record.written_ms, 0};
  beat.sum = sum_of_beat(beat, origin.file);
  return beat;
}

Result<Image> encode(const Record& record, std::string_view election, const Origin& origin) {
  Image image{};
  image.magic = magic;
  image.version = format_version;
  image.size = sizeof image;
  image.term_ms = ceil<milliseconds>(record.term).count();
  image.token = record.token.value;
  image.released = record.released ? encode_release(record.beat) : 0;
  image.device = origin.file.device;
  image.inode = origin.file.inode;
  image.time_namespace = origin.time_namespace;
  image.beat = encode_beat(record, origin);
  std::memcpy(image.boot_id, origin.boot_id.data(), std::min(origin.boot_id.size(), boot_id_bytes));
  if (!put(image.election, election)) return too_long("election", election.size(), max_election_bytes);
  if (!put(image.who, record.who)) return too_long("who", record.who.size(), max_who_bytes);
  image.sum = sum_of_fixed(image);
  return image;
}

std::variant<Unreadable, OtherFormat, Decoded> decode(std::string_view bytes) {
  Image image{};
  std::memcpy(&image, bytes.data(), std::min(bytes.size(), sizeof image));
  if (bytes.size() < offsetof(Image, token) || image.magic != magic) return Unreadable{};
  if (image.version != format_version) return OtherFormat{image.version};
  if (bytes.size() != sizeof image || image.size != sizeof image || image.sum != sum_of_fixed(image))
    return Unreadable{};

  Decoded out;
  out.origin = {std::string(image.boot_id, ::strnlen(image.boot_id, boot_id_bytes)),
                image.time_namespace,
                {static_cast<dev_t>(image.device), static_cast<ino_t>(image.inode)}};
  const bool whole = get(image.election, out.election) && get(image.who, out.record.who);
  if (!whole || image.beat.sum != sum_of_beat(image.beat, out.origin.file)) return Unreadable{};
  if (image.term_ms < 0 || image.term_ms > milliseconds(longest_stored_term).count()) return Unreadable{};
  out.record.token = {image.token};
  out.record.released = image.released != 0;
  out.record.beat = out.record.released ? encode_release(image.released) : image.beat.beat;
  out.record.term = milliseconds(image.term_ms);
  out.record.asked = Clock::Duration(image.beat.asked_ns);
  out.record.written_ms = image.beat.written_ms;
  return out;
}

}  // namespace tenure::file
