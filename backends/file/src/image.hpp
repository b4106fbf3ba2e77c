// SPDX-License-Identifier: Apache-2.0
// A record as it stands in a tenure's file. Pure: bytes in, values out.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include <tenure/candidate.hpp>
#include <tenure/conditional_store.hpp>
#include <tenure/kit/who.hpp>
#include <tenure/result.hpp>

#include "descriptor.hpp"

namespace tenure::file {

inline constexpr std::uint32_t format_version = 1;
inline constexpr std::size_t boot_id_bytes = 36;

/// Says where a record was written: in which run of which machine, by which clock, in which file.
struct Origin {
  std::string boot_id;
  std::uint64_t time_namespace{};
  FileId file;
};

/// A renewal writes this one aligned block in one call. By its sum a reader notices that it saw only half of it.
struct Beat {
  std::uint64_t beat;
  std::int64_t asked_ns;
  std::int64_t written_ms;
  std::uint64_t sum;
};

template <std::size_t n>
struct Text {
  std::uint16_t size;
  char bytes[n];
};

/// `magic`, `version` and `term_ms` keep place and meaning in every version. The bytes are in the machine's own order.
/// Another kind of machine therefore finds that the magic is wrong.
struct Image {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;
  std::int64_t term_ms;
  std::uint64_t token;
  std::uint64_t released;  ///< 0, or the beat of the release, disguised so that it is never 0.
  std::uint64_t device, inode, time_namespace;
  Beat beat;
  char boot_id[40];
  Text<max_election_bytes> election;
  Text<max_who_bytes> who;
  std::uint64_t sum;  ///< The sum of all but `released` and `beat`, which change.
};
static_assert(std::is_trivially_copyable_v<Image> && offsetof(Image, term_ms) == 16);
static_assert(offsetof(Image, beat) == 64 && sizeof(Beat) == 32, "within one cache line and one disk sector");
static_assert(sizeof(Image) == 1352 && offsetof(Image, sum) == 1344);

/// It throws nothing. An error names the field that is too long.
Result<Image> encode(const Record& record, std::string_view election, const Origin& origin);

Beat encode_beat(const Record& record, const Origin& origin);
std::uint64_t encode_release(std::uint64_t beat);

struct Decoded {
  Record record;  ///< `released` is what the holder said, and no more.
  Origin origin;
  std::string election;
};
struct Unreadable {};
struct OtherFormat {
  std::uint32_t version;
};

std::variant<Unreadable, OtherFormat, Decoded> decode(std::string_view bytes);

}  // namespace tenure::file
