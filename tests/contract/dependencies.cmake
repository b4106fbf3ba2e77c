# SPDX-License-Identifier: Apache-2.0
find_package(GTest QUIET)
if(NOT TARGET GTest::gtest)
  set(TENURE_CONTRACT_MISSING "GoogleTest was not found (Debian: apt install libgtest-dev)")
endif()
