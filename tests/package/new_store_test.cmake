# SPDX-License-Identifier: Apache-2.0
# Goal: a new store is a folder and a line. Method: a copy of the house gets the store of examples/store as backends/shelf
# and its line in stores.list, and nothing else. It is configured without optional rooms, and every list knows the store.
# Then tenure::open() opens it.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/from_source.cmake)
file(REMOVE_RECURSE ${BINARY})
foreach(part IN ITEMS CMakeLists.txt LICENSE README.md CHANGELOG.md core backends adapters docker examples tests)
  file(COPY ${SOURCE}/${part} DESTINATION ${BINARY}/house)
endforeach()
set(shelf ${BINARY}/house/backends/shelf)
file(COPY ${CMAKE_CURRENT_LIST_DIR}/new_store/ DESTINATION ${shelf})
file(COPY ${SOURCE}/examples/store/shelf.hpp DESTINATION ${shelf}/src)
file(APPEND ${BINARY}/house/backends/stores.list "shelf shelf,shelves list_url\n")

from_source(${BINARY})
list(APPEND configure -S ${BINARY}/house -B ${BINARY}/build ${from_source})
run(${configure} -D TENURE_OPTIONAL_ROOMS=OFF -D TENURE_GMOCK=ON)

function(expect who pattern text)
  if(NOT text MATCHES "${pattern}")
    string(SUBSTRING "${text}" 0 2000 beginning)
    message(SEND_ERROR "${who} does not know the new store: ${beginning}")
  endif()
endfunction()
file(READ ${BINARY}/build/tenureConfig.cmake text)
expect("the package's bundle of stores" "_tenure_needs_stores [^)]*shelf" "${text}")
file(READ ${BINARY}/build/compile_commands.json text)
expect("the soak of candidates" "TENURE_SHARED_STORES=[^ ]*[^\n]* shelf[^\n]*soak_test.cpp" "${text}")
file(GLOB text ${BINARY}/build/tests/house/alone/*)
expect("the test of headers alone" "shelf_tenure_shelf_hpp" "${text}")
file(GLOB labels ${BINARY}/build/tests/chaos/*shelf*_labels.cmake)
expect("the list of soaks" "shelf" "${labels}")
run(bash -c "'${BINARY}/house/tests/run' --help")
expect("tests/run" "a store: [^.]*shelf" "${output}")
run(bash -c "'${BINARY}/house/core/cmake/manual' --print")
expect("the manual" "INPUT =[^\n]* backends/shelf/include" "${output}")
expect("the manual" "PREDEFINED =[^\n]* TENURE_SHELF_EXPORT=" "${output}")
run(/usr/bin/env python3 -c "import sys, types\n\
class Anything(types.ModuleType):\n\
    def __getattr__(self, name): return object\n\
for name in ('', '.tools', '.tools.build', '.tools.cmake', '.tools.files'): sys.modules['conan' + name] = Anything('conan')\n\
sys.path.insert(0, '${BINARY}/house/core/cmake')\n\
import conanfile\nprint(conanfile.STORES)")
expect("Conan's recipe" "'shelf'" "${output}")

run(${CMAKE_COMMAND} --build ${BINARY}/build --target opens_shelf)
run(${BINARY}/build/backends/shelf/opens_shelf)
