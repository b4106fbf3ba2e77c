# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. Each room has two components: tenure_<NAME> is what a program needs that runs, and
# tenure_<NAME>_dev what is needed to build one. Static and header-only libraries have the second one alone.
#   tenure_install_library(NAME ...)   called by tenure_library()
#   tenure_install_program(TARGET)     an executable
#   tenure_install_data(NAME FILE...)  of the room NAME, into share/tenure
#   tenure_install_package()           what is there once: tenureConfig.cmake, the licence, the documents
# With TENURE_INSTALL=OFF, which another project gets that adds this one, all of them do nothing.
if(NOT TENURE_INSTALL)
  foreach(what IN ITEMS library program data package)
    cmake_language(EVAL CODE "function(tenure_install_${what})\nendfunction()")
  endforeach()
  return()
endif()
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(TENURE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/tenure)

function(tenure_install_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PUBLIC;PRIVATE;PC_PUBLIC;PC_PRIVATE;PC_SOURCES")
  set(target tenure_${name})
  install(TARGETS ${target} EXPORT ${target}
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${target}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${target} NAMELINK_COMPONENT ${target}_dev
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${target}_dev
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${target} FILE ${target}-targets.cmake NAMESPACE tenure::
    DESTINATION ${TENURE_PACKAGE_DIR} COMPONENT ${target}_dev)
  foreach(tree IN ITEMS ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR})
    install(DIRECTORY ${tree}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT ${target}_dev
      OPTIONAL FILES_MATCHING PATTERN "*.hpp")
  endforeach()

  tenure_split_rooms(public_rooms public_vendors ${arg_PUBLIC})
  tenure_split_rooms(private_rooms private_vendors ${arg_PRIVATE})
  # CMake names the rooms that a library is linked to in either way, and looks for them.
  list(APPEND private_rooms ${public_rooms})
  set_property(GLOBAL APPEND PROPERTY tenure_rooms ${name})
  set_property(GLOBAL PROPERTY tenure_needs_${name} ${private_rooms})
  set(requires ${public_rooms})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    # It brings what it is linked to: who links it needs only what its headers include.
    set(private_vendors)
    set(arg_PC_PRIVATE)
    tenure_install_rpath(${target} "$ORIGIN")
  else()
    set(requires ${private_rooms})
  endif()
  if(public_vendors OR private_vendors)
    install(FILES dependencies.cmake RENAME ${target}-dependencies.cmake
      DESTINATION ${TENURE_PACKAGE_DIR} COMPONENT ${target}_dev)
  endif()
  list(TRANSFORM requires PREPEND tenure-)
  tenure_install_pkgconfig(${name} "${arg_PC_SOURCES}" ${requires} ${arg_PC_PUBLIC} ${arg_PC_PRIVATE})
endfunction()

# Which of these libraries are rooms of ours; ROOMS gets their names. A room's tenure::NAME is an alias.
function(tenure_split_rooms rooms vendors)
  foreach(library IN LISTS ARGN)
    get_target_property(room ${library} ALIASED_TARGET)
    if(room)
      string(REPLACE tenure_ "" room ${room})
      list(APPEND ours ${room})
    else()
      list(APPEND others ${library})
    endif()
  endforeach()
  set(${rooms} ${ours} PARENT_SCOPE)
  set(${vendors} ${others} PARENT_SCOPE)
endfunction()

function(tenure_install_pkgconfig name sources) # REQUIRED...
  set(target tenure_${name})
  set(requires ${ARGN})
  list(REMOVE_DUPLICATES requires)
  list(JOIN requires ", " requires)
  get_target_property(type ${target} TYPE)
  list(TRANSFORM sources REPLACE "(.+)" "\${prefix}/\\1")
  list(JOIN sources " " sources)
  if(sources)
    set(sources "sources=${sources}\n")
  endif()
  set(libs)
  set(flags)
  if(NOT type STREQUAL "INTERFACE_LIBRARY")
    set(libs "-L\${libdir} -l${target}")
    get_target_property(definitions ${target} INTERFACE_COMPILE_DEFINITIONS)
    if(definitions)
      list(JOIN definitions " -D" definitions)
      set(flags " -D${definitions}")
    endif()
  endif()
  if(name STREQUAL "core")
    string(APPEND libs " -pthread")
    string(APPEND flags " -pthread")
  endif()
  # Relative to the file itself: the prefix may be moved, and `cmake --install --prefix` chooses it late.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} OUTPUT_VARIABLE libdir)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_INCLUDEDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}
    OUTPUT_VARIABLE includedir)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
    OUTPUT_VARIABLE up)
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/tenure-${name}.pc @ONLY CONTENT [[prefix=${pcfiledir}/@up@
libdir=${prefix}/@libdir@
includedir=${prefix}/@includedir@
@sources@
Name: tenure-@name@
Description: @PROJECT_DESCRIPTION@
Version: @PROJECT_VERSION@
Requires: @requires@
Cflags: -I${includedir}@flags@
Libs: @libs@
]])
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/tenure-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${target}_dev)
endfunction()

# Our libraries find each other below any prefix. In the system's own folders the loader looks by itself.
function(tenure_install_rpath target path)
  if(NOT DEFINED CMAKE_INSTALL_RPATH AND NOT CMAKE_INSTALL_FULL_LIBDIR IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH ${path})
  endif()
endfunction()

function(tenure_install_program target)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR} OUTPUT_VARIABLE libdir)
  if(BUILD_SHARED_LIBS)
    tenure_install_rpath(${target} "$ORIGIN/${libdir}")
  endif()
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${target})
endfunction()

function(tenure_install_data name)
  install(FILES ${ARGN} DESTINATION ${CMAKE_INSTALL_DATADIR}/tenure COMPONENT tenure_${name}_dev)
endfunction()

function(tenure_install_package)
  get_property(rooms GLOBAL PROPERTY tenure_rooms)
  foreach(room IN LISTS rooms)
    get_property(needs GLOBAL PROPERTY tenure_needs_${room})
    string(APPEND tenure_needs "set(_tenure_needs_${room} ${needs})\n")
  endforeach()
  configure_package_config_file(${PROJECT_SOURCE_DIR}/core/cmake/tenureConfig.cmake.in
    ${PROJECT_BINARY_DIR}/tenureConfig.cmake INSTALL_DESTINATION ${TENURE_PACKAGE_DIR})
  # Before 1.0 a minor version may change the interface.
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/tenureConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/tenureConfig.cmake ${PROJECT_BINARY_DIR}/tenureConfigVersion.cmake
    DESTINATION ${TENURE_PACKAGE_DIR} COMPONENT tenure_core_dev)

  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tenure_core)
  # The documents stay where their links to each other lead.
  file(GLOB_RECURSE documents RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS core/*.md backends/*.md adapters/*.md
    examples/*.md)
  foreach(document IN ITEMS README.md CHANGELOG.md LISTS documents)
    cmake_path(GET document PARENT_PATH folder)
    install(FILES ${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder} COMPONENT tenure_core_dev)
  endforeach()
endfunction()
