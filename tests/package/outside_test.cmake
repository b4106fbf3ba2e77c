# SPDX-License-Identifier: Apache-2.0
# Builds examples/outside, as a user does who has a program and a copy of the repository.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${BINARY})
file(COPY ${SOURCE}/examples/outside/CMakeLists.txt DESTINATION ${BINARY}/reports)
file(COPY_FILE ${SOURCE}/examples/leader.cpp ${BINARY}/reports/main.cpp)
file(CREATE_LINK ${SOURCE} ${BINARY}/reports/tenure SYMBOLIC)
foreach(step IN ITEMS
    "-G;${GENERATOR};-S;${BINARY}/reports;-B;${BINARY}/build;-DCMAKE_CXX_COMPILER=${COMPILER}\
;-DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER};-DCMAKE_UNITY_BUILD=ON"
    "--build;${BINARY}/build")
  execute_process(COMMAND ${CMAKE_COMMAND} ${step} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${output}")
  endif()
endforeach()
file(GLOB_RECURSE libraries ${BINARY}/build/*.a)
if(libraries MATCHES "tenure_(kafka|postgres|redis|json)")
  message(FATAL_ERROR "built for nothing: ${libraries}")
endif()
