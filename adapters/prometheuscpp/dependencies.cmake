# SPDX-License-Identifier: Apache-2.0
find_package(prometheus-cpp CONFIG QUIET)
if(NOT TARGET prometheus-cpp::core)
  set(TENURE_PROMETHEUSCPP_MISSING "prometheus-cpp was not found (Debian: apt install prometheus-cpp-dev)")
endif()
