# SPDX-License-Identifier: Apache-2.0
# Builds the libraries and the examples in one CONFIGURATION by one COMPILER with these SETTINGS, warnings being errors.
cmake_minimum_required(VERSION 3.25)
foreach(step IN ITEMS
    "-G;${GENERATOR};-S;${SOURCE};-B;${BINARY};-DCMAKE_BUILD_TYPE=${CONFIGURATION};-DCMAKE_CXX_COMPILER=${COMPILER}\
;-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER};-DCMAKE_UNITY_BUILD=ON;-DCMAKE_UNITY_BUILD_BATCH_SIZE=0\
;-DTENURE_WERROR=ON;-DTENURE_TESTS=OFF;${SETTINGS}"
    "--build;${BINARY}")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${CONFIGURATION} by ${COMPILER}:\n${output}")
  endif()
endforeach()
