# SPDX-License-Identifier: Apache-2.0
# Goal: the author of a store runs the contract suite out of an installed package, and it convicts a store that does not
# keep the contract. Method: builds examples/store against PREFIX and runs it, then a copy whose writes have no condition.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(REMOVE_RECURSE ${BINARY})
file(COPY ${SOURCE}/examples/store DESTINATION ${BINARY})
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} -D CMAKE_PREFIX_PATH=${PREFIX})
run(${configure} -S ${BINARY}/store -B ${BINARY}/build)
run(${CMAKE_COMMAND} --build ${BINARY}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${BINARY}/build -j 8 --output-on-failure)
if(NOT output MATCHES "100% tests passed" OR NOT output MATCHES "StoreContract")
  message(FATAL_ERROR "the suite of shelf_test said: ${output}")
endif()

file(READ ${BINARY}/store/shelf.hpp text)
string(REPLACE "matches(expected, record)" "true" broken "${text}")
if(broken STREQUAL text)
  message(FATAL_ERROR "shelf.hpp has no condition that could be broken")
endif()
file(WRITE ${BINARY}/store/shelf.hpp "${broken}")
run(${CMAKE_COMMAND} --build ${BINARY}/build)
execute_process(COMMAND ${BINARY}/build/shelf_test --gtest_filter=*OfTwoClones*
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "FAILED.*OfTwoClonesOfAHolderOneIsRefused")
  message(FATAL_ERROR "a store whose writes have no condition passed: ${output}")
endif()
