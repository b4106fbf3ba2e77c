// SPDX-License-Identifier: Apache-2.0
// Goal: a file that a user names is read as a whole, or it is said why not, at once. Method: files, a pipe and a
// device.
#include <tenure/kit/files.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "scratch.hpp"

namespace tenure {
namespace {

std::string refusal(const Result<std::string>& read) { return read ? "none" : read.error().message; }

TEST(Files, AreReadAsAWhole) {
  const test::Scratch scratch;
  EXPECT_EQ(*content_of(scratch.file("f", "a\n\n"), 3), "a\n\n");
  EXPECT_EQ(*content_of(scratch.file("f", ""), 3), "");
  EXPECT_EQ(refusal(content_of(scratch.file("f", "abcd"), 3)), "is too large: at most 3 bytes are allowed");
  EXPECT_EQ(refusal(content_of("/nowhere/f", 3)), "cannot be found: No such file or directory");
}

TEST(Files, ThatWouldBlockOrNeverEndAreRefused) {
  const test::Scratch scratch;
  const auto pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& path : {pipe, std::filesystem::path("/dev/zero"), scratch.path()})
    EXPECT_EQ(refusal(content_of(path, 3)), "is not a regular file") << path;
}

TEST(Files, WithASecretHaveOne) {
  const test::Scratch scratch;
  EXPECT_EQ(*secret_of(scratch.file("s", "a\n\n"), 3), "a\n") << "without one newline";
  for (const auto* nothing : {"", "\n"}) EXPECT_EQ(refusal(secret_of(scratch.file("s", nothing), 3)), "is empty");
  EXPECT_EQ(refusal(secret_of(scratch.file("s", std::string("a\0", 2)), 3)), "has a NUL byte in it");
}

}  // namespace
}  // namespace tenure
