# SPDX-License-Identifier: Apache-2.0
# Reads backends/stores.list, also for scripts of CMake. Sets:
#   TENURE_STORES            all stores
#   TENURE_OPTIONAL_STORES   those that need a client library
#   TENURE_SERVERS           those that have a server
#   tenure_schemes_NAME, tenure_functions_NAME   what the list says of each
cmake_path(SET tenure_backends NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../backends)
file(STRINGS ${tenure_backends}/stores.list lines REGEX "^[a-z]")
set(TENURE_STORES)
set(TENURE_OPTIONAL_STORES)
set(TENURE_SERVERS)
foreach(line IN LISTS lines)
  string(REGEX REPLACE " +" ";" words ${line})
  list(POP_FRONT words store schemes)
  list(APPEND TENURE_STORES ${store})
  string(REPLACE "," ";" tenure_schemes_${store} ${schemes})
  set(tenure_functions_${store} ${words})
  if(EXISTS ${tenure_backends}/${store}/dependencies.cmake)
    list(APPEND TENURE_OPTIONAL_STORES ${store})
  endif()
  if(EXISTS ${tenure_backends}/../docker/${store})
    list(APPEND TENURE_SERVERS ${store})
  endif()
endforeach()
