// SPDX-License-Identifier: Apache-2.0
#include "closable_log.hpp"

#include <tenure/kit/logging.hpp>

namespace tenure::kafka {

ClosableLog::ClosableLog(const Options& options)
    : log_(options.log), redacted_(redactor_of(options.properties)), election_(options.group) {}

void ClosableLog::write(Level level, std::string_view message) noexcept {
  ++writing_;
  if (!closed_) try {
      tell(log_, level, redacted_(message), {{"election", election_}, {"store", "kafka"}});
    } catch (...) {  // redacting takes memory
    }
  if (--writing_ == 0) writing_.notify_all();
}

void ClosableLog::close() noexcept {
  closed_ = true;
  for (auto busy = writing_.load(); busy > 0; busy = writing_.load()) writing_.wait(busy);
}

}  // namespace tenure::kafka
