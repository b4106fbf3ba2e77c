# SPDX-License-Identifier: Apache-2.0
# from_source(BUILD): sets from_source to settings by which all tests that compile us in projects of their own compile the
# same for ccache, so that only the first one takes its time. The library is one translation unit, without debug
# information; paths below BUILD are made relative.
function(from_source build)
  set(ENV{CCACHE_BASEDIR} ${build})
  set(from_source -D CMAKE_UNITY_BUILD=ON -D CMAKE_UNITY_BUILD_BATCH_SIZE=0 -D CMAKE_CXX_FLAGS_DEBUG=-O0 PARENT_SCOPE)
endfunction()
