// SPDX-License-Identifier: Apache-2.0
// What the launchers in docker/ print, for tests that start servers of their own; and a server of any store.
#pragma once
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#ifdef TENURE_LAUNCHERS
#include <gtest/gtest.h>
#include <unistd.h>
#endif

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

#ifdef TENURE_LAUNCHERS
/// A server of a test's own, by docker/STORE. It ends with this object, or with this process.
class Launched {
 public:
  /// `options`: more for the launcher.
  explicit Launched(const std::string& store, const std::string& options = {})
      : kafka_(store == "kafka"),
        launcher_(TENURE_LAUNCHERS + store),
        variable_(kafka_                ? "TENURE_KAFKA_BROKERS"
                  : store == "postgres" ? "TENURE_POSTGRES_URL"
                                        : upper(store)),
        directory_(
            output_of(launcher_ + " start --owner " + std::to_string(::getpid()) + ' ' + options +
                      (kafka_ ? " --set group.min.session.timeout.ms=1000 --set group.initial.rebalance.delay.ms=0"
                                " --set transaction.abort.timed.out.transaction.cleanup.interval.ms=500"
                              : ""))) {}
  ~Launched() { call("stop"); }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

  bool runs() const { return !directory_.empty(); }
  const std::filesystem::path& directory() const { return directory_; }
  /// What the launcher says of it.
  std::string said(const std::string& variable) const { return read_env(directory_)[variable]; }
  std::string url() const {
    auto address = said(variable_);
    std::erase(address, '\'');
    return kafka_ ? "kafka://" + address + "/launched?create_topic=true&min_session_ms=1000" : address;
  }

  void crash() const { kafka_ ? call("node 1 kill --dir") : call("crash"); }       ///< By SIGKILL.
  void restart() const { kafka_ ? call("node 1 start --dir") : call("restart"); }  ///< On the same data.
  void freeze() const { kafka_ ? call("node 1 freeze --dir") : call("freeze"); }
  void promote() const { call("promote"); }  ///< REQUIRES: a standby of PostgreSQL.
  void thaw() const { kafka_ ? call("node 1 thaw --dir") : call("thaw"); }

 private:
  static std::string upper(std::string name) {
    for (auto& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return "TENURE_" + name;
  }
  void call(const std::string& words) const {
    if (!runs()) return;
    const auto command = "timeout 180 " + launcher_ + ' ' + words + ' ' + directory_.string();
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }

  const bool kafka_;
  const std::string launcher_, variable_;
  const std::filesystem::path directory_;
};
#endif

}  // namespace tenure::test
