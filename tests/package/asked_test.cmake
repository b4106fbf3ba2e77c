# SPDX-License-Identifier: Apache-2.0
# Who builds us from source gets what was asked for: PostgreSQL alone by FetchContent, with no look for another client
# library; what it links is built, and nothing else; the contract suite by add_subdirectory, for a store of one's own.
# Configures, and compiles nothing.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
function(ask way) # ROOM...
  file(REMOVE_RECURSE ${BINARY})
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/asked -B ${BINARY} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D WAY=${way} "-DROOMS=${ARGN}" -D TENURE_SOURCE=${SOURCE} -D FETCHCONTENT_SOURCE_DIR_TENURE=${SOURCE})
  file(STRINGS ${BINARY}/CMakeCache.txt looked_for REGEX "^(TENURE_[A-Z]+_FOUND|[A-Za-z_+-]+_DIR):.*=.*[^=]$")
  set(looked_for "${looked_for}" PARENT_SCOPE)
  file(READ ${BINARY}/compile_commands.json commands)
  set(commands "${commands}" PARENT_SCOPE)
endfunction()

ask(FetchContent postgres)
if(NOT looked_for MATCHES "TENURE_PQXX_FOUND" OR
    looked_for MATCHES "RDKAFKA|HIREDIS|HTTPLIB|nlohmann|CURL|spdlog|prometheus-cpp|GTest|CLI11")
  message(SEND_ERROR "for PostgreSQL alone CMake looked for: ${looked_for}")
endif()
include(${SOURCE}/core/cmake/stores.cmake)
list(REMOVE_ITEM TENURE_OPTIONAL_STORES postgres)
list(JOIN TENURE_OPTIONAL_STORES "|" others)
if(NOT commands MATCHES "backends/postgres/src" OR commands MATCHES "(backends/(${others})|adapters/(json|http))/src")
  message(SEND_ERROR "PostgreSQL alone compiles: ${commands}")
endif()
run(${CMAKE_COMMAND} --build ${BINARY} -- -t commands)  # Ninja's
if(output MATCHES "[.]cpp")
  message(SEND_ERROR "nothing is linked, and this is built: ${output}")
endif()

ask(add_subdirectory contract)
if(NOT commands MATCHES "shelf_test.dir[^\n]*contract_suite.cpp" OR
    NOT commands MATCHES "shelf_test.dir[^\n]*group_suite.cpp")
  message(SEND_ERROR "who links tenure::contract compiles no suite: ${commands}")
endif()
