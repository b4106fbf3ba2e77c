# SPDX-License-Identifier: Apache-2.0
# Looks at what TREE installs and what stands in PREFIX, both made by package.installed_shared: names, versions, parts.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect message) # CONDITION...
  if(${ARGN})
  else()
    message(SEND_ERROR "${message}")
  endif()
endfunction()

file(STRINGS ${SOURCE}/core/include/tenure/version.hpp version REGEX "define TENURE_VERSION ")
string(REGEX MATCH "[0-9.]+" version "${version}")
string(REGEX MATCH "^[0-9]+.[0-9]+" soname "${version}")

# Every room has a file for pkg-config, which knows the version and where the prefix has gone to.
set(ENV{PKG_CONFIG_PATH} ${PREFIX}/lib/pkgconfig)
file(GLOB rooms RELATIVE ${PREFIX}/lib/cmake/tenure ${PREFIX}/lib/cmake/tenure/tenure_*-targets.cmake)
list(TRANSFORM rooms REPLACE "^tenure_(.*)-targets.cmake$" "\\1")
list(LENGTH rooms count)
expect("only ${rooms} are installed in ${PREFIX}" count GREATER 5)
foreach(room IN LISTS rooms)
  run(pkg-config --modversion tenure-${room})
  expect("pkg-config tenure-${room}: ${output}" output STREQUAL "${version}\n")
  file(READ ${PREFIX}/lib/pkgconfig/tenure-${room}.pc text)
  expect("tenure-${room}.pc is not filled in: ${text}" NOT text MATCHES "NOTFOUND|@")
  run(pkg-config --variable=includedir tenure-${room})
  string(STRIP "${output}" output)
  expect("tenure-${room} names no folder with headers: ${output}" EXISTS "${output}/tenure/version.hpp")
endforeach()
# A shared library names nothing of what is below it.
foreach(room IN ITEMS kafka postgres redis etcd json http)
  if(room IN_LIST rooms)
    run(pkg-config --print-requires --print-requires-private tenure-${room})
    expect("tenure-${room} requires ${output}" output STREQUAL "tenure-core\n")
  endif()
endforeach()

# SONAME: before 1.0 a minor version may change the interface.
file(GLOB libraries ${PREFIX}/lib/libtenure_*.so)
foreach(library IN LISTS libraries)
  cmake_path(GET library FILENAME name)
  run(objdump -p ${library})
  expect("${name} has another SONAME than ${name}.${soname}" output MATCHES "SONAME +${name}.${soname}\n")
  expect("${name} does not look beside itself, so that the prefix cannot be moved" output MATCHES "RUNPATH +.ORIGIN\n")
endforeach()

foreach(document IN ITEMS LICENSE README.md CHANGELOG.md core/README.md)
  expect("${document} is not installed" EXISTS ${PREFIX}/share/doc/tenure/${document})
endforeach()

# What runs and what builds are two components.
foreach(component IN ITEMS tenure_core tenure_core_dev)
  file(REMOVE_RECURSE ${BINARY})
  run(${CMAKE_COMMAND} --install ${TREE} --component ${component} --prefix ${BINARY})
  file(GLOB_RECURSE files RELATIVE ${BINARY} ${BINARY}/*)
  expect("${component} installs nothing" files)
  foreach(file IN LISTS files)
    if(component STREQUAL "tenure_core")
      expect("${component} installs ${file}" file MATCHES "^lib/libtenure_core.so.[0-9.]+$|LICENSE$")
    else()
      expect("${component} installs ${file}" NOT file MATCHES "[.]so[.]|LICENSE$")
    endif()
  endforeach()
endforeach()

# Where the system's loader looks by itself, a library names no folder.
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${BINARY} -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_INSTALL_PREFIX=/usr -D BUILD_SHARED_LIBS=ON -D TENURE_TESTS=OFF -D TENURE_EXAMPLES=OFF)
expect("${output}" result EQUAL 0)
file(STRINGS ${BINARY}/core/cmake_install.cmake lines REGEX "ORIGIN")
expect("below /usr a library looks in: ${lines}" NOT lines)
