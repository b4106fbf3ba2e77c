# SPDX-License-Identifier: Apache-2.0
# Configures every subset of the optional stores, with all else that could be built, tests included. And what cannot be
# built is refused with a reason.
cmake_minimum_required(VERSION 3.25)

function(configure)
  file(REMOVE_RECURSE ${BINARY})
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${BINARY} -D CMAKE_CXX_COMPILER=${COMPILER}
    ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

include(${SOURCE}/core/cmake/stores.cmake)
set(subsets " ")
foreach(store IN LISTS TENURE_OPTIONAL_STORES)
  string(TOUPPER TENURE_${store} option)
  set(without ${subsets})
  set(with ${subsets})
  list(TRANSFORM without APPEND "-D${option}=OFF ")
  list(TRANSFORM with APPEND "-D${option}=AUTO ")
  set(subsets ${without} ${with})
endforeach()
foreach(subset IN LISTS subsets)
  separate_arguments(settings UNIX_COMMAND "${subset}")
  configure(${settings})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${subset}:\n${output}")
  endif()
endforeach()

configure(-D TENURE_TESTS=ON -D TENURE_GMOCK=OFF)
if(result EQUAL 0 OR NOT output MATCHES "TENURE_TESTS=ON needs GoogleMock and tenure::gmock.*TENURE_GMOCK=OFF.*TENURE_TESTS=OFF")
  message(FATAL_ERROR "tests without GoogleMock: ${result}\n${output}")
endif()
