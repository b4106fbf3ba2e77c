# SPDX-License-Identifier: Apache-2.0
# Builds the copy of the repository that this port stands in.
set(SOURCE_PATH ${CURRENT_PORT_DIR}/../../..)
foreach(room IN ITEMS kafka postgres redis etcd json http prometheuscpp spdlog gmock)
  string(TOUPPER TENURE_${room} option)
  if(room IN_LIST FEATURES)
    list(APPEND options -D${option}=ON)
  else()
    list(APPEND options -D${option}=OFF)
  endif()
endforeach()
vcpkg_cmake_configure(SOURCE_PATH ${SOURCE_PATH}
  OPTIONS ${options} -DTENURE_TOOL=OFF -DTENURE_CONTRACT=OFF -DTENURE_TESTS=OFF -DTENURE_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tenure)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share)
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE)
