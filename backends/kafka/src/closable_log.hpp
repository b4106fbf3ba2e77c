// SPDX-License-Identifier: Apache-2.0
// The user's functions, for what outlives their user; and the warning of brokers without TLS.
#pragma once
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tenure/kafka_token.hpp>
#include <tenure/log.hpp>

#include <tenure/result.hpp>

#include "settings.hpp"

namespace tenure::kafka {

/// The lines of an election and of its handles go here, without secrets, and their logins come from here. It outlives
/// every handle. close() ends the use of the user's functions. Any thread may call it.
class ClosableLog {
 public:
  explicit ClosableLog(const Options& options);
  void write(Level level, std::string_view message) noexcept;
  bool has_tokens() const { return bool(tokens_); }
  Result<OauthToken> token();  ///< An error once it is closed, and if its source throws one.
  /// Asks for user and password, as properties of a new handle; none where nobody gives any. Throws
  /// NoCredentials.
  Properties login();
  /// Returns when no function of the user's runs, nor will be called again. REQUIRES: none of them calls it.
  void close() noexcept;
  Redactor redacted() const;
  /// Texts that no line and no error shows from here on.
  void hide(const std::vector<std::string>& secrets);

 private:
  struct Running;

  Log log_;
  OauthTokenSource tokens_;
  AskCredentials credentials_;
  mutable std::mutex mutex_;
  std::set<std::string> secrets_;
  std::string password_;  ///< What credentials_ returned last.
  std::string election_;
  std::atomic<bool> closed_{false};
  std::atomic<unsigned> running_{0};  ///< Calls of the user's functions.
};

/// Of each broker of a network that TLS does not protect.
void warn_without_tls(const Options& options, ClosableLog& log);

}  // namespace tenure::kafka
