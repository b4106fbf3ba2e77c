// SPDX-License-Identifier: Apache-2.0
#include "closable_log.hpp"

#include <tenure/kit/logging.hpp>

namespace tenure::kafka {

ClosableLog::ClosableLog(const Options& options)
    : log_(options.log),
      tokens_(options.oauth_token),
      redacted_(redactor_of(options.properties)),
      election_(options.group) {}

void ClosableLog::write(Level level, std::string_view message) noexcept {
  ++running_;
  if (!closed_) try {
      tell(log_, level, redacted_(message), {{"election", election_}, {"store", "kafka"}});
    } catch (...) {  // redacting takes memory
    }
  returned();
}

Result<OauthToken> ClosableLog::token() {
  const struct Running {
    explicit Running(ClosableLog& it) : log(it) { ++log.running_; }
    ~Running() { log.returned(); }
    ClosableLog& log;
  } running(*this);
  if (closed_) return Error{Fault::unreachable, "the election is over"};
  return tokens_();
}

void ClosableLog::returned() noexcept {
  if (--running_ == 0) running_.notify_all();
}

void ClosableLog::close() noexcept {
  closed_ = true;
  for (auto busy = running_.load(); busy > 0; busy = running_.load()) running_.wait(busy);
}

}  // namespace tenure::kafka
