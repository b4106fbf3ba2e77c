# SPDX-License-Identifier: Apache-2.0
# Builds tests/package/consumer against tenure in the WAY asked for and runs it.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(build ${CMAKE_COMMAND} --build)
set(configure ${CMAKE_COMMAND} -G ${GENERATOR} -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
file(REMOVE_RECURSE ${BINARY})

if(WAY STREQUAL "subdirectory")
  set(how -D TENURE_SOURCE=${SOURCE} -D TENURE_KAFKA=OFF)
else()
  set(tree ${TREE})  # installed_default: what has been built already
  if(WAY STREQUAL "installed_shared")
    set(tree ${BINARY}/tenure)
    run(${configure} -S ${SOURCE} -B ${tree} -D BUILD_SHARED_LIBS=ON -D TENURE_TESTS=OFF -D TENURE_EXAMPLES=OFF)
    run(${build} ${tree})
  endif()
  run(${CMAKE_COMMAND} --install ${tree} --prefix ${BINARY}/prefix)
  set(how -D CMAKE_PREFIX_PATH=${BINARY}/prefix)
endif()

run(${configure} ${how} -S ${SOURCE}/tests/package/consumer -B ${BINARY}/consumer)
run(${build} ${BINARY}/consumer --target consumer)
run(${BINARY}/consumer/consumer)
if(NOT output MATCHES "leads")
  message(FATAL_ERROR "the consumer said: ${output}")
endif()
