# SPDX-License-Identifier: Apache-2.0
# use_tenure(ROOM...): the WAY in which a project finds us. Each branch is what a user writes.
macro(use_tenure)
  if(TARGET tenure::core)
    # The project above has added us already.
  elseif(WAY STREQUAL "find_package")
    find_package(tenure 0.1 REQUIRED COMPONENTS ${ARGN})
  else()
    foreach(room IN ITEMS ${ARGN})
      string(TOUPPER TENURE_${room} option)
      set(${option} ON)
    endforeach()
    if(WAY STREQUAL "add_subdirectory")
      # The folder is the one that FetchContent takes, so that ccache finds what the other way has compiled.
      add_subdirectory(${TENURE_SOURCE} _deps/tenure-build EXCLUDE_FROM_ALL)
    else()
      include(FetchContent)
      FetchContent_Declare(tenure URL https://example.org/tenure.tar.gz)  # the test sets FETCHCONTENT_SOURCE_DIR_TENURE
      FetchContent_MakeAvailable(tenure)
    endif()
  endif()
endmacro()
