// SPDX-License-Identifier: Apache-2.0
// Goal: one program elects through every store; only a string differs.
// Method: examples/any_store as two processes. One is given a URL, the other a JSON document with the same URL. The
// first one leads. When it leaves, the second one leads with a greater token. tests/run has started the servers.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include <tenure/clock.hpp>
#include <tenure/kit/logging.hpp>

#include "lateness.hpp"
#ifdef TENURE_WITH_REDIS
#include "server.hpp"
#endif

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto patience = 60s;  // for what a busy host does late

/// A process of examples/any_store. The destructor kills it, and prints its output if the test has failed.
class Program {
 public:
  explicit Program(std::string argument) : argument_(std::move(argument)) {
    int out[2];
    errors_ = ::memfd_create("stderr", MFD_CLOEXEC);
    if (errors_ < 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("memfd_create, pipe");
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(errors_, STDERR_FILENO);
      ::execl(TENURE_ANY_STORE, TENURE_ANY_STORE, argument_.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(out[1]);
    out_ = out[0];
  }
  ~Program() {
    if (pid_ > 0) end(SIGKILL);
    if (testing::Test::HasFailure()) tell();
    ::close(out_);
    ::close(errors_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Its next line. Nothing if there is none in that time, or if it has ended.
  std::optional<std::string> line(std::chrono::milliseconds within) {
    const auto end = tenure::boot_clock().now() + within;
    for (;;) {
      if (const auto newline = read_.find('\n'); newline != read_.npos) {
        const auto found = read_.substr(0, newline);
        read_.erase(0, newline + 1);
        return found;
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - tenure::boot_clock().now()).count();
      pollfd ready{.fd = out_, .events = POLLIN, .revents = 0};
      char buffer[256];
      if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return std::nullopt;
      const auto n = ::read(out_, buffer, sizeof buffer);
      if (n <= 0) return std::nullopt;
      read_.append(buffer, static_cast<std::size_t>(n));
      said_.append(buffer, static_cast<std::size_t>(n));
    }
  }

  /// The token by which it leads; 0 if it does not lead.
  std::uint64_t leads(std::chrono::milliseconds within) {
    const auto said = line(within);
    return said && said->starts_with("leads ") ? std::stoull(said->substr(6)) : 0;
  }

  /// Its exit status.
  int end(int signal) {
    ::kill(pid_, signal);
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  void tell() {
    while (line(1s)) {
    }
    std::string errors(64 * 1024, '\0');
    errors.resize(static_cast<std::size_t>(std::max<ssize_t>(::pread(errors_, errors.data(), errors.size(), 0), 0)));
    std::printf("any_store %s said:\n%sand on stderr:\n%s", argument_.c_str(), said_.c_str(), errors.c_str());
  }

  const std::string argument_;
  pid_t pid_{-1};
  int out_{-1}, errors_{-1};
  std::string read_, said_;
};

struct AnyStore : testing::Test {
  AnyStore() {
    auto name = (fs::temp_directory_path() / "tenure-any-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp " + name);
    scratch = name;
  }
  ~AnyStore() override {
    std::error_code ignored;
    fs::remove_all(scratch, ignored);
  }

  std::string document(const std::string& url) const {
    const auto path = scratch / "configuration.json";
    std::ofstream(path) << R"({"store": ")" << url << R"(", "election": "any-store", "timing": "fast"})";
    return path.string();
  }

  void expect_hand_over(const std::string& url) const {
    Program by_url(url);
    const auto first = by_url.leads(patience);
    ASSERT_NE(first, 0u);
    Program by_document(document(url));
    EXPECT_EQ(by_document.line(500ms), std::nullopt) << "while the first leads";
    EXPECT_EQ(by_url.end(SIGTERM), 0);
    EXPECT_EQ(by_url.line(1s), "ends stopped");
    const auto second = by_document.leads(patience);
    EXPECT_GT(second, first) << TENURE_PROMISE;
    EXPECT_EQ(by_document.end(SIGTERM), 0);
  }

  /// A name that no other run used.
  static std::string unique() {
    return "any-store-" + std::to_string(tenure::boot_clock().unix_ms()) + "-" + std::to_string(::getpid());
  }

  fs::path scratch;
};

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

TEST_F(AnyStore, Memory) {
  for (const auto& argument : {std::string("memory:"), document("memory:x")}) {
    Program program(argument);
    EXPECT_NE(program.leads(patience), 0u) << "alone in its process";
    EXPECT_EQ(program.end(SIGTERM), 0);
  }
}

TEST_F(AnyStore, File) { expect_hand_over("file://" + scratch.string() + "/store"); }

TEST_F(AnyStore, Kafka) {
  const auto brokers = environment("TENURE_KAFKA_BROKERS");
  if (brokers.empty()) GTEST_SKIP() << "no Kafka broker: TENURE_KAFKA_BROKERS is not set (tests/run sets it)";
  const auto name = unique();
  expect_hand_over("kafka://" + brokers + "/" + name + "?create_topic=true&group=" + name);
}

TEST_F(AnyStore, Postgres) {
  const auto url = environment("TENURE_POSTGRES_URL");
  if (url.empty()) GTEST_SKIP() << "no PostgreSQL: TENURE_POSTGRES_URL is not set (tests/run sets it)";
  expect_hand_over(url);
}

TEST_F(AnyStore, Redis) {
#ifdef TENURE_WITH_REDIS
  TENURE_NEEDS_REDIS();
  const tenure::redis::test::Server server;
  expect_hand_over("redis://" + server.address());
  expect_hand_over("redis+unix://" + server.socket());
#else
  GTEST_SKIP() << "this build has no Redis (hiredis)";
#endif
}

TEST_F(AnyStore, WhatCannotBeOpenedIsRefused) {
  for (const std::string argument : {"nonsense://x", "/nonexistent.json", ""}) {
    Program program(argument);
    EXPECT_EQ(program.line(10s), std::nullopt);
    EXPECT_EQ(program.end(0), 1) << argument;
  }
}

}  // namespace
