# SPDX-License-Identifier: Apache-2.0
# What Debian wants in every package, its licence and its changes. CPack runs this before it packs.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
string(TIMESTAMP year "%Y" UTC)
set(copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: tenure

Files: *
Copyright: ${year} the authors of tenure
License: Apache-2.0
 On Debian systems, the full text of the Apache License version 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
")
set(changes "tenure (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * The changelog of libtenure-dev tells what has changed.

 -- ${CPACK_DEBIAN_PACKAGE_MAINTAINER}  ${date}
")
file(GLOB groups RELATIVE ${CPACK_TEMPORARY_DIRECTORY} ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(group IN LISTS groups)
  string(TOUPPER ${group} GROUP)
  if(NOT DEFINED CPACK_DEBIAN_${GROUP}_PACKAGE_NAME)
    continue()
  endif()
  set(share ${CPACK_TEMPORARY_DIRECTORY}/${group}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  set(root ${share}/doc)
  file(GLOB pages ${share}/man/man*/*.[0-9])
  foreach(page IN LISTS pages)
    execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  set(folder ${root}/${CPACK_DEBIAN_${GROUP}_PACKAGE_NAME})
  file(GLOB_RECURSE licences ${root}/*/LICENSE)
  foreach(licence IN LISTS licences)  # copyright says where it is
    file(REMOVE ${licence})
    cmake_path(GET licence PARENT_PATH parent)
    file(GLOB others ${parent}/*)
    if(NOT others)
      file(REMOVE_RECURSE ${parent})
    endif()
  endforeach()
  if(EXISTS ${folder}/CHANGELOG.md)  # by the name that Debian gives it
    file(RENAME ${folder}/CHANGELOG.md ${folder}/changelog)
    execute_process(COMMAND gzip -9nf ${folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(WRITE ${folder}/copyright "${copyright}")
  file(WRITE ${folder}/changelog.Debian "${changes}")
  execute_process(COMMAND gzip -9nf ${folder}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
endforeach()
