# SPDX-License-Identifier: Apache-2.0
# Goal: the author of a store runs the contract suite out of an installed package, and it convicts a store that does not
# keep the contract. Method: builds examples/store against PREFIX and runs it, then copies that break one rule each.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(REMOVE_RECURSE ${BINARY})
file(COPY ${SOURCE}/examples/store DESTINATION ${BINARY})
list(APPEND configure -D CMAKE_PREFIX_PATH=${PREFIX})
run(${configure} -S ${BINARY}/store -B ${BINARY}/build)
run(${CMAKE_COMMAND} --build ${BINARY}/build)
run(${CMAKE_CTEST_COMMAND} --test-dir ${BINARY}/build -j 8 --output-on-failure)
if(NOT output MATCHES "100% tests passed" OR NOT output MATCHES "StoreContract")
  message(FATAL_ERROR "the suite of shelf_test said: ${output}")
endif()

file(READ ${BINARY}/store/shelf.hpp text)
# What is replaced by what, and the test that notices.
function(convicts old new test)
  string(REPLACE "${old}" "${new}" broken "${text}")
  if(broken STREQUAL text)
    message(FATAL_ERROR "shelf.hpp has no ${old} that could be broken")
  endif()
  file(WRITE ${BINARY}/store/shelf.hpp "${broken}")
  run(${CMAKE_COMMAND} --build ${BINARY}/build)
  execute_process(COMMAND ${BINARY}/build/shelf_test --gtest_filter=*${test}*
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(result EQUAL 0 OR NOT output MATCHES "FAILED.*${test}")
    message(FATAL_ERROR "a store with ${new} in place of ${old} passed: ${output}")
  endif()
endfunction()
convicts("matches(expected, record)" "true" OfTwoClonesOfAHolderOneIsRefused)
convicts("record->written_ms = limit.clock.unix_ms()" "record->written_ms = 0" TheStoreSaysWhenARecordWasWritten)
convicts(".absence_certain" ".same_clock = true, .absence_certain" NobodyClaimsAnothersClockForItsOwn)
convicts("if (limit.passed()) return late()" "static_cast<void>(late())" ACallAfterItsLimitIsAnErrorAndWritesNothing)
