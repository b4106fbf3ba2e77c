# SPDX-License-Identifier: Apache-2.0
# Configures every subset of the four stores, with all else that could be built, tests included. And what cannot be
# built is refused with a reason.
cmake_minimum_required(VERSION 3.25)

function(configure)
  file(REMOVE_RECURSE ${BINARY})
  execute_process(COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${BINARY} -D CMAKE_CXX_COMPILER=${COMPILER}
    ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

foreach(kafka IN ITEMS OFF AUTO)
  foreach(postgres IN ITEMS OFF AUTO)
    foreach(redis IN ITEMS OFF AUTO)
      foreach(etcd IN ITEMS OFF AUTO)
        set(subset -D TENURE_KAFKA=${kafka} -D TENURE_POSTGRES=${postgres} -D TENURE_REDIS=${redis}
          -D TENURE_ETCD=${etcd})
        configure(${subset})
        if(NOT result EQUAL 0)
          message(FATAL_ERROR "${subset}:\n${output}")
        endif()
      endforeach()
    endforeach()
  endforeach()
endforeach()

configure(-D TENURE_TESTS=ON -D TENURE_GMOCK=OFF)
if(result EQUAL 0 OR NOT output MATCHES "TENURE_TESTS=ON needs GoogleMock and tenure::gmock.*TENURE_GMOCK=OFF.*TENURE_TESTS=OFF")
  message(FATAL_ERROR "tests without GoogleMock: ${result}\n${output}")
endif()
