# SPDX-License-Identifier: Apache-2.0
# Finds librdkafka's C library, by pkg-config (Debian has no CMake package of it) or by its own CMake package,
# and gives it one name: tenure::rdkafka.
if(NOT TARGET tenure::rdkafka)
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(TENURE_RDKAFKA QUIET IMPORTED_TARGET GLOBAL rdkafka>=2.0.2)
  endif()
  if(NOT TARGET PkgConfig::TENURE_RDKAFKA)
    find_package(RdKafka 2.0.2 CONFIG QUIET)
  endif()
  if(TARGET PkgConfig::TENURE_RDKAFKA)
    set(_tenure_rdkafka PkgConfig::TENURE_RDKAFKA)
  elseif(TARGET RdKafka::rdkafka)
    set(_tenure_rdkafka RdKafka::rdkafka)
  else()
    set(TENURE_KAFKA_MISSING
      "librdkafka 2.0.2 or newer was not found (Debian: apt install librdkafka-dev pkg-config)")
  endif()
  if(NOT DEFINED TENURE_KAFKA_MISSING)
    add_library(tenure::rdkafka INTERFACE IMPORTED GLOBAL)
    set_property(TARGET tenure::rdkafka PROPERTY INTERFACE_LINK_LIBRARIES ${_tenure_rdkafka})
  endif()
endif()
