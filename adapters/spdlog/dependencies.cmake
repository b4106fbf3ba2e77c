# SPDX-License-Identifier: Apache-2.0
find_package(spdlog 1.10 CONFIG QUIET)
if(NOT TARGET spdlog::spdlog)
  set(TENURE_SPDLOG_MISSING "spdlog 1.10 or newer was not found (Debian: apt install libspdlog-dev)")
endif()
