// SPDX-License-Identifier: Apache-2.0
// The user's functions, for what outlives their user.
#pragma once
#include <atomic>
#include <string>
#include <string_view>

#include <tenure/kafka_token.hpp>
#include <tenure/log.hpp>

#include <tenure/result.hpp>

#include "settings.hpp"

namespace tenure::kafka {

/// The lines of an election and of its handles go here, without secrets, and their tokens come from here. It outlives
/// every handle. close() ends the use of the user's functions. Any thread may call it.
class ClosableLog {
 public:
  explicit ClosableLog(const Options& options);
  void write(Level level, std::string_view message) noexcept;
  bool has_tokens() const { return bool(tokens_); }
  Result<OauthToken> token();  ///< An error once it is closed.
  /// Returns when no function of the user's runs, nor will be called again. REQUIRES: none of them calls it.
  void close() noexcept;
  const Redactor& redacted() const { return redacted_; }

 private:
  void returned() noexcept;

  Log log_;
  OauthTokenSource tokens_;
  Redactor redacted_;
  std::string election_;
  std::atomic<bool> closed_{false};
  std::atomic<unsigned> running_{0};  ///< Calls of the user's functions.
};

}  // namespace tenure::kafka
