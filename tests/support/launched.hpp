// SPDX-License-Identifier: Apache-2.0
// What the launchers in docker/ print, for tests that start servers of their own.
#pragma once
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

namespace tenure::test {

/// What the command printed, without line ends at its end.
inline std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::array<char, 4096> buffer{};
  std::string out;
  while (const auto n = pipe ? std::fread(buffer.data(), 1, buffer.size(), pipe.get()) : 0)
    out.append(buffer.data(), n);
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

/// The file `env` of the directory that a launcher printed.
inline std::map<std::string, std::string> read_env(const std::filesystem::path& directory) {
  std::map<std::string, std::string> out;
  std::ifstream in(directory / "env");
  for (std::string line; std::getline(in, line);) {
    const auto equals = line.find('=');
    auto value = line.substr(equals + 1);
    if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
    out[line.substr(0, equals)] = value;
  }
  return out;
}

}  // namespace tenure::test
