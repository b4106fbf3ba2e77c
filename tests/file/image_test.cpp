// SPDX-License-Identifier: Apache-2.0
// Goal: what is read is what was written, or nothing. Method: every bit of a file turned round, every length
// cut.
#include "image.hpp"

#include <cstring>

#include <tenure/kit/who.hpp>

#include "support.hpp"

namespace tenure::file {
namespace {

const Origin here{std::string(boot_id_bytes, 'b'), 42, {1, 99}};

Image written(const Record& record, const std::string& election = "jobs") { return *encode(record, election, here); }

std::string bytes(const Image& image) { return {reinterpret_cast<const char*>(&image), sizeof image}; }

TEST(FileImage, ARecordIsReadAsItWasWritten) {
  auto mine = record(7, 70);
  mine.written_ms = 123;
  mine.who = std::string(max_who_bytes, '~');
  const auto read = std::get<Decoded>(decode(bytes(written(mine, std::string(max_election_bytes, '\n')))));
  EXPECT_EQ(read.record, mine);
  EXPECT_EQ(read.election, std::string(max_election_bytes, '\n'));
  EXPECT_EQ(read.origin.boot_id, here.boot_id);
  EXPECT_EQ(read.origin.time_namespace, here.time_namespace);
  EXPECT_EQ(read.origin.file, here.file);
}

TEST(FileImage, NoTurnedBitIsTakenForARecord) {
  const auto mine = record(7, 70);
  const auto good = bytes(written(mine));
  const auto release = offsetof(Image, released);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    if (bit / 8 >= release && bit / 8 < release + sizeof(std::uint64_t)) continue;  // a release is any word
    auto bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(std::holds_alternative<Decoded>(decode(bad))) << "bit " << bit;
  }
}

TEST(FileImage, NoPartIsTakenForARecord) {
  const auto good = bytes(written(record(7, 70)));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_TRUE(std::holds_alternative<Unreadable>(decode(good.substr(0, size)))) << size << " bytes";
  EXPECT_TRUE(std::holds_alternative<Unreadable>(decode(good + '\0')));
}

TEST(FileImage, HalfABeatIsNoBeat) {
  auto image = written(record(7, 70));
  const auto next = encode_beat(record(7, 71), here);
  for (std::size_t size = 8; size < sizeof next; size += 8) {
    auto torn = image;
    std::memcpy(&torn.beat, &next, size);
    EXPECT_TRUE(std::holds_alternative<Unreadable>(decode(bytes(torn)))) << size << " bytes";
  }
  image.beat = next;
  EXPECT_EQ(std::get<Decoded>(decode(bytes(image))).record.beat, 71u);
}

TEST(FileImage, AReleaseIsOneWord) {
  auto image = written(record(7, 70));
  EXPECT_FALSE(std::get<Decoded>(decode(bytes(image))).record.released);
  for (const std::uint64_t beat : {0ULL, 1ULL, ~0ULL}) {
    image.released = encode_release(beat);
    const auto read = std::get<Decoded>(decode(bytes(image))).record;
    EXPECT_TRUE(read.released);
    EXPECT_EQ(read.beat, beat);
  }
}

TEST(FileImage, AnotherFormatIsRecognised) {
  auto image = written(record(7, 70));
  image.version = 2;
  EXPECT_EQ(std::get<OtherFormat>(decode(bytes(image))).version, 2u);
  EXPECT_TRUE(std::holds_alternative<OtherFormat>(decode(bytes(image) + "longer")));
}

TEST(FileImage, ATextThatIsTooLongIsNamed) {
  auto mine = record(7, 70);
  mine.who = std::string(max_who_bytes + 1, 'i');
  EXPECT_NE(encode(mine, "jobs", here).error().message.find("who has 1001 bytes"), std::string::npos);
}

}  // namespace
}  // namespace tenure::file
