// SPDX-License-Identifier: Apache-2.0
// What tenure says, through a logger of spdlog. The logger's level decides what is written.
#pragma once
#include <memory>
#include <stdexcept>
#include <utility>

#include <spdlog/logger.h>

#include <tenure/kit/logging.hpp>
#include <tenure/log.hpp>

namespace tenure {

/// Give it to a manager as Hooks::log. A line's fields follow its message as name=value. If `logger` is null, throws
/// std::invalid_argument.
/// REQUIRES: several threads may use the logger (its sinks end in _mt), and it does not block. For a disk that may be
/// slow take spdlog's async logger with the policy overrun_oldest.
inline Log spdlog_log(std::shared_ptr<spdlog::logger> logger) {
  if (!logger) throw std::invalid_argument("spdlog_log: the logger is missing");
  return [logger = std::move(logger)](const LogLine& line) {
    const auto level = line.level == Level::debug     ? spdlog::level::debug
                       : line.level == Level::info    ? spdlog::level::info
                       : line.level == Level::warning ? spdlog::level::warn
                                                      : spdlog::level::err;
    if (logger->should_log(level)) logger->log(level, one_line(line));
  };
}

}  // namespace tenure
