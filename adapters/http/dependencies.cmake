# SPDX-License-Identifier: Apache-2.0
find_package(nlohmann_json 3.11 CONFIG QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  set(TENURE_HTTP_MISSING "nlohmann/json 3.11 or newer was not found (Debian: apt install nlohmann-json3-dev)")
endif()
