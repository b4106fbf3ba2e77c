# SPDX-License-Identifier: Apache-2.0
# Configures each optional store alone, all but each, and none, with all else that could be built, tests included. And what
# cannot be built is refused with a reason.
cmake_minimum_required(VERSION 3.25)

function(configure)
  file(REMOVE_RECURSE ${BINARY})
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${BINARY} -D CMAKE_CXX_COMPILER=${COMPILER}
    ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

include(${SOURCE}/core/cmake/stores.cmake)
# The options, such as TENURE_REDIS. Those of `these` are the other way round than the rest.
string(TOUPPER "TENURE_${TENURE_OPTIONAL_STORES}" options)
list(JOIN options ";TENURE_" options)
function(configure_with these rest) # OPTION...
  set(settings)
  foreach(option IN LISTS options)
    if(option IN_LIST ARGN)
      list(APPEND settings -D${option}=${these})
    else()
      list(APPEND settings -D${option}=${rest})
    endif()
  endforeach()
  configure(${settings})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${settings}:\n${output}")
  endif()
endfunction()
configure_with(AUTO OFF)
foreach(option IN LISTS options)
  configure_with(AUTO OFF ${option})
  configure_with(OFF AUTO ${option})
endforeach()

configure(-D TENURE_TESTS=ON -D TENURE_GMOCK=OFF)
if(result EQUAL 0 OR NOT output MATCHES "TENURE_TESTS=ON needs GoogleMock and tenure::gmock.*TENURE_GMOCK=OFF.*TENURE_TESTS=OFF")
  message(FATAL_ERROR "tests without GoogleMock: ${result}\n${output}")
endif()
