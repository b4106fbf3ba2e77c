# SPDX-License-Identifier: Apache-2.0
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
