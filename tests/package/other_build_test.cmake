# SPDX-License-Identifier: Apache-2.0
# Goal: objects whose containers or strings are others than the library's do not link, and the linker says why. Method: a
# program that includes a header, compiled with each setting of libstdc++ and linked to the core of this build.
file(GLOB libraries ${TREE}/core/libtenure_core*.a)
file(WRITE ${BINARY}/main.cpp "#include <tenure/error.hpp>\nint main() {}\n")
function(link how settings)
  execute_process(COMMAND ${COMPILER} -std=c++20 -DTENURE_STATIC_DEFINE ${settings} -I${SOURCE}/core/include
      -I${TREE}/core/include ${BINARY}/main.cpp ${libraries} -o ${BINARY}/main
    RESULT_VARIABLE status ERROR_VARIABLE said)
  if(how STREQUAL "links" AND NOT status EQUAL 0)
    message(FATAL_ERROR "a program built as the library does not link: ${said}")
  elseif(NOT how STREQUAL "links" AND NOT said MATCHES "undefined [^\n]*${how}")
    message(FATAL_ERROR "with ${settings} nobody says ${how}: ${status} ${said}")
  endif()
endfunction()
link(links "")
link(tenure::built_with_GLIBCXX_DEBUG_by_CXX11_ABI_1 "-D_GLIBCXX_DEBUG")
link(tenure::built_without_GLIBCXX_DEBUG_by_CXX11_ABI_0 "-D_GLIBCXX_USE_CXX11_ABI=0")
