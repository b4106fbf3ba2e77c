// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace tenure::tool {

/// How the command tells that its work goes on: it writes to a descriptor that it finds open, or it sends "WATCHDOG=1"
/// as sd_notify(3) does. One thread uses it.
class Progress {
 public:
  Progress();  ///< Throws std::system_error.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  int writes() const { return write_; }                ///< The command's end of a pipe.
  const std::string& socket() const { return name_; }  ///< For its NOTIFY_SOCKET: our user's and root's alone.
  static void remove(const std::string& socket);       ///< Its directory, too.
  void handed_on();                                    ///< The guardian has its copy of writes(); ours is closed.

  int reads() const { return read_; }  ///< Both are readable if told() has something.
  int hears() const { return socket_; }
  /// Whether it has told anything since the last call.
  bool told() const;

 private:
  int read_{-1}, write_{-1}, socket_{-1};
  std::string name_;
};

}  // namespace tenure::tool
