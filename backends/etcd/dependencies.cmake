# SPDX-License-Identifier: Apache-2.0
# Finds libcurl (of any TLS library) and nlohmann/json.
find_package(CURL 7.88 QUIET)
find_package(nlohmann_json 3.11 CONFIG QUIET)
if(NOT TARGET CURL::libcurl)
  set(TENURE_ETCD_MISSING "libcurl 7.88 or newer was not found (Debian: apt install libcurl4-openssl-dev)")
elseif(NOT TARGET nlohmann_json::nlohmann_json)
  set(TENURE_ETCD_MISSING "nlohmann/json 3.11 or newer was not found (Debian: apt install nlohmann-json3-dev)")
endif()
