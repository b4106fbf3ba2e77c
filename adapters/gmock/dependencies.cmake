# SPDX-License-Identifier: Apache-2.0
find_package(GTest QUIET)
if(NOT TARGET GTest::gmock)
  set(TENURE_GMOCK_MISSING "GoogleMock was not found (Debian: apt install libgmock-dev libgtest-dev)")
endif()
