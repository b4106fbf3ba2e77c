# SPDX-License-Identifier: Apache-2.0
find_package(CLI11 2.1 CONFIG QUIET)
if(NOT TARGET CLI11::CLI11)
  set(TENURE_TOOL_MISSING "CLI11 2.1 or newer was not found (Debian: apt install libcli11-dev)")
elseif(NOT TARGET tenure::json)
  set(TENURE_TOOL_MISSING "it reads configurations by tenure::json, which is left out")
endif()
