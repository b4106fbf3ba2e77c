// SPDX-License-Identifier: Apache-2.0
// Which election of which store a command is about.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/backend.hpp>
#include <tenure/clock.hpp>
#include <tenure/log.hpp>
#include <tenure/open.hpp>

namespace CLI {
class App;
}

namespace tenure::tool {

/// What stands on the command line.
struct Place {
  std::string store{}, election{}, file{};  ///< `file`: a JSON document instead of the two.
  std::string password_file{}, id{}, address{}, preset{}, term{};
  std::string witness{};  ///< A property of the file store, not of the command line.
  bool asks{};            ///< What is opened only asks: it makes no topic.
};

/// A place that was opened. It connects to nothing yet.
struct Opened {
  std::shared_ptr<Backend> backend;
  Timing timing;
  Opening opening;    ///< It holds secrets.
  std::string store;  ///< Its URL, without secrets.
};

/// The command ends with this code, and says so on stderr.
struct Failed : std::runtime_error {
  Failed(int exit_code, const std::string& message) : std::runtime_error(message), code(exit_code) {}
  int code;
};

/// --store and what belongs to it. TENURE_URL stands for --store.
void add_store(CLI::App& command, Place& place);
/// And -e, or -c in place of both.
void add_election(CLI::App& command, Place& place);

/// Throws Failed if one of these options is given, which would be ignored. TENURE_URL may be meant for other commands.
void refuse_given(const Place& place, const std::vector<std::string_view>& options, const std::string& why);

/// The duration that an option gives. Throws Failed.
Clock::Duration option(const std::string& name, const std::string& text);

/// What stands in the file that the option of this name gives, without one newline at its end. Throws Failed.
std::string secret_in(const std::string& name, const std::string& path);

/// What --timing or --term says, of a store with these presets. Throws Failed.
Timing timing_of(const Place& place, const Presets& presets);

/// What --store and --password-file name, without an election. Throws Failed.
Opening opening_of(const Place& place);

/// Takes out of it what would make a topic or a table: a question changes nothing.
void only_ask(Opening& opening);

/// Throws Failed.
Opened open_place(const Place& place, Log log);

/// What a command says of an error of the store; `unreachable` is its exit code unless a setting is at fault. Throws
/// Failed.
[[noreturn]] void fail(const Error& error, int unreachable);

}  // namespace tenure::tool
