# SPDX-License-Identifier: Apache-2.0
# How every room of the house is built, found and installed.
#   tenure_room(FOLDER)            a room that is always built
#   tenure_optional_room(FOLDER)   a room with the option TENURE_<NAME>=AUTO|ON|OFF; FOLDER/dependencies.cmake
#                                  finds its third-party library, or sets TENURE_<NAME>_MISSING to the remedy.
#                                  Where nobody says, it is what TENURE_OPTIONAL_ROOMS is: AUTO, and OFF in another
#                                  project, until that project asks for the room
#   tenure_library(NAME ...)       the room's library; called in the room's own CMakeLists.txt
#   tenure_compile_options(TARGET) warnings and sanitizers; also for tests and examples
include(GenerateExportHeader)
include(${CMAKE_CURRENT_LIST_DIR}/install.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/stores.cmake)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tenure_backends}/stores.list)

if(PROJECT_IS_TOP_LEVEL)
  set(tenure_optional_rooms AUTO)
else()
  set(tenure_optional_rooms OFF)
endif()
set(TENURE_OPTIONAL_ROOMS ${tenure_optional_rooms} CACHE STRING "Build optional rooms of which nobody says: AUTO or OFF")

# Imported targets must be seen by tests and examples, and by a project that adds this one as a subdirectory and links our static libraries.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

function(tenure_room folder)
  include(${PROJECT_SOURCE_DIR}/${folder}/dependencies.cmake OPTIONAL)
  add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
endfunction()

function(tenure_optional_room folder)
  cmake_path(GET folder FILENAME room)
  string(TOUPPER TENURE_${room} option)
  set(${option} ${TENURE_OPTIONAL_ROOMS} CACHE STRING "Build ${folder}: AUTO (if its library is here), ON or OFF")
  set_property(CACHE ${option} PROPERTY STRINGS AUTO ON OFF)
  string(TOUPPER "${${option}}" said)
  if(NOT ${option} STREQUAL "AUTO" AND NOT said MATCHES "^(ON|OFF|YES|NO|Y|N|TRUE|FALSE|1|0)$")
    message(FATAL_ERROR "${option}=${${option}}: it must be AUTO, ON or OFF")
  endif()
  if(NOT ${option} STREQUAL "AUTO" AND NOT ${option})
    return()
  endif()
  include(${PROJECT_SOURCE_DIR}/${folder}/dependencies.cmake)
  if(NOT DEFINED ${option}_MISSING)
    add_subdirectory(${PROJECT_SOURCE_DIR}/${folder} ${PROJECT_BINARY_DIR}/${folder})
  elseif(${option} STREQUAL "AUTO")
    message(STATUS "tenure::${room} is left out: ${${option}_MISSING}")
  else()
    message(FATAL_ERROR "${option}=${${option}}, but ${${option}_MISSING}")
  endif()
endfunction()

# tenure_library(NAME [STATIC] [SOURCES file...] [PUBLIC library...] [PRIVATE library...] [PC_PUBLIC name...] [PC_PRIVATE name...]
#                [PC_SOURCES file...])
# Makes the target tenure_NAME and its alias tenure::NAME out of include/ and src/**.cpp (or SOURCES), and
# tenure::NAME_internals, which adds src/ to the include path for the room's own tests. Without sources it is a
# header-only library. Exported symbols are marked TENURE_NAME_EXPORT from <tenure/NAME_export.hpp>;
# in core TENURE_EXPORT from <tenure/export.hpp>. STATIC: it is never a shared library, and exports nothing. PC_PUBLIC and PC_PRIVATE are what pkg-config calls the third-party
# libraries among PUBLIC and PRIVATE. PC_SOURCES are files below the prefix that whoever uses it compiles: pkg-config
# tells them as the variable `sources`.
function(tenure_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC" "" "SOURCES;PUBLIC;PRIVATE;PC_PUBLIC;PC_PRIVATE;PC_SOURCES")
  if(NOT arg_SOURCES)
    file(GLOB_RECURSE arg_SOURCES CONFIGURE_DEPENDS src/*.cpp)
  endif()
  set(target tenure_${name})
  if(arg_SOURCES)
    set(type)
    if(arg_STATIC)
      set(type STATIC)
    endif()
    add_library(${target} ${type} ${arg_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE ${arg_PRIVATE})
    target_include_directories(${target} PRIVATE src)
    tenure_compile_options(${target})
    set_target_properties(${target} PROPERTIES
      CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON
      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    if(NOT arg_STATIC)
      tenure_export_header(${name})
    endif()
    if(NOT PROJECT_IS_TOP_LEVEL AND NOT TENURE_INSTALL)  # Another project builds what it links.
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(tenure::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${arg_PUBLIC})
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/include>)

  add_library(${target}_internals INTERFACE)
  add_library(tenure::${name}_internals ALIAS ${target}_internals)
  target_link_libraries(${target}_internals INTERFACE ${target} ${arg_PRIVATE})
  target_include_directories(${target}_internals INTERFACE src)

  tenure_install_library(${name} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE}
    PC_PUBLIC ${arg_PC_PUBLIC} PC_PRIVATE ${arg_PC_PRIVATE} PC_SOURCES ${arg_PC_SOURCES})
endfunction()

function(tenure_export_header name)
  if(name STREQUAL "core")
    set(base TENURE)
    set(file export.hpp)
  else()
    string(TOUPPER tenure_${name} base)
    set(file ${name}_export.hpp)
  endif()
  generate_export_header(tenure_${name} BASE_NAME ${base}
    EXPORT_FILE_NAME ${CMAKE_CURRENT_BINARY_DIR}/include/tenure/${file})
  get_target_property(type tenure_${name} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_compile_definitions(tenure_${name} PUBLIC ${base}_STATIC_DEFINE)
  endif()
endfunction()

function(tenure_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -Wthread-safety)
  endif()
  # In "text" + std::string GCC 12 sees a copy that overlaps itself, where it inlines enough (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  if(TENURE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(TENURE_SANITIZE)
    set(sanitize -fsanitize=${TENURE_SANITIZE} -fno-omit-frame-pointer)
    # The instrumented code makes GCC see uninitialised members of variants that are not there.
    target_compile_options(${target} PRIVATE ${sanitize} -fno-sanitize-recover=all
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> ${TENURE_SANITIZE_LESS})
    target_link_options(${target} PUBLIC ${sanitize})
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # Clang's check of virtual calls opens a pipe to look at a type: a test that leaves no descriptor would fail.
      target_compile_options(${target} PRIVATE -fno-sanitize=vptr)
      # GCC's names for what is on; clang++ has none.
      if(TENURE_SANITIZE MATCHES "address")
        target_compile_definitions(${target} PRIVATE __SANITIZE_ADDRESS__)
      elseif(TENURE_SANITIZE MATCHES "thread")
        target_compile_definitions(${target} PRIVATE __SANITIZE_THREAD__)
      endif()
    endif()
  endif()
endfunction()
