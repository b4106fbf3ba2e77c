// SPDX-License-Identifier: Apache-2.0
#include "paint.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace tenure::tool {
namespace {

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
  return text ? text : "";
}

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::good: return "\x1b[32m";
    case Colour::doubtful: return "\x1b[33m";
    case Colour::bad: return "\x1b[31m";
    case Colour::faint: return "\x1b[2m";
  }
  return "";
}

}  // namespace

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1 && variable("TERM") != "dumb"; }

bool is_coloured(int descriptor) { return is_terminal(descriptor) && variable("NO_COLOR").empty(); }

std::string painted(Colour colour, const std::string& text, int descriptor) {
  return is_coloured(descriptor) ? code_of(colour) + text + "\x1b[0m" : text;
}

}  // namespace tenure::tool
