// SPDX-License-Identifier: Apache-2.0
// Calls the user's functions until the backend is gone, and never afterwards.
#include "closable_log.hpp"

#include <exception>
#include <stdexcept>

#include <tenure/kit/logging.hpp>
#include <tenure/kit/store.hpp>

namespace tenure::kafka {

/// As long as it lives, a function of the user's may run.
struct ClosableLog::Running {
  explicit Running(ClosableLog& it) : log(it) { ++log.running_; }
  ~Running() {
    if (--log.running_ == 0) log.running_.notify_all();
  }
  ClosableLog& log;
};

ClosableLog::ClosableLog(const Options& options)
    : log_(options.log), tokens_(options.oauth_token), credentials_(options.credentials), election_(options.group) {
  hide(secrets_of(options.properties));
}

void ClosableLog::write(Level level, std::string_view message) noexcept {
  const Running running(*this);
  if (!closed_) try {
      tell(log_, level, redacted()(message), {{"election", election_}, {"store", "kafka"}});
    } catch (...) {  // redacting takes memory
    }
}

Result<OauthToken> ClosableLog::token() {
  const Running running(*this);
  if (closed_) return Error{Fault::unreachable, "the election is over"};
  try {
    return tokens_();
  } catch (const std::exception& e) {
    return Error{Fault::unreachable, e.what()};
  }
}

Properties ClosableLog::login() {
  if (!credentials_) return {};
  const Running running(*this);
  if (closed_) throw std::runtime_error("the election is over");
  auto found = credentials_by(credentials_, redacted());
  const std::lock_guard lock(mutex_);
  password_ = found.password;
  return {{"sasl.username", std::move(found.user)}, {"sasl.password", std::move(found.password)}};
}

void ClosableLog::hide(const std::vector<std::string>& secrets) {
  const std::lock_guard lock(mutex_);
  secrets_.insert(secrets.begin(), secrets.end());
}

Redactor ClosableLog::redacted() const {
  const std::lock_guard lock(mutex_);
  std::vector secrets(secrets_.begin(), secrets_.end());
  secrets.push_back(password_);
  return Redactor(std::move(secrets));
}

void warn_without_tls(const Options& options, ClosableLog& log) {
  if (const auto remedy = tls_remedy(options); !remedy.empty())
    for (const auto& host : hosts_of_a_network(options))
      log.write(Level::warning, unprotected("broker " + host, remedy));
}

void ClosableLog::close() noexcept {
  closed_ = true;
  for (auto busy = running_.load(); busy > 0; busy = running_.load()) running_.wait(busy);
}

}  // namespace tenure::kafka
