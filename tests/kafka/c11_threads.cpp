// SPDX-License-Identifier: Apache-2.0
// ThreadSanitizer knows POSIX threads only, and crashes in those that librdkafka starts by C11's functions. In its
// builds, and nowhere else, these stand in for the C library's.
#ifdef __SANITIZE_THREAD__
#include <pthread.h>
#include <threads.h>

#include <cerrno>
#include <ctime>
#include <memory>

namespace {

struct Start {
  thrd_start_t function;
  void* argument;
};

void* run(void* opaque) {
  const std::unique_ptr<Start> start(static_cast<Start*>(opaque));
  return reinterpret_cast<void*>(static_cast<intptr_t>(start->function(start->argument)));
}

pthread_mutex_t* native(mtx_t* mutex) { return reinterpret_cast<pthread_mutex_t*>(mutex); }
pthread_cond_t* native(cnd_t* condition) { return reinterpret_cast<pthread_cond_t*>(condition); }

int result(int error) {
  return error == 0 ? thrd_success : error == ETIMEDOUT ? thrd_timedout : error == EBUSY ? thrd_busy : thrd_error;
}

}  // namespace

static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t) && sizeof(cnd_t) >= sizeof(pthread_cond_t));

extern "C" {
int thrd_create(thrd_t* thread, thrd_start_t function, void* argument) {
  auto start = std::make_unique<Start>(Start{function, argument});
  const int error = pthread_create(thread, nullptr, run, start.get());
  if (error == 0) static_cast<void>(start.release());
  return result(error);
}
int thrd_join(thrd_t thread, int* out) {
  void* value = nullptr;
  const int error = pthread_join(thread, &value);
  if (out) *out = static_cast<int>(reinterpret_cast<intptr_t>(value));
  return result(error);
}
int thrd_detach(thrd_t thread) { return result(pthread_detach(thread)); }
int mtx_init(mtx_t* mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  const int error = pthread_mutex_init(native(mutex), &attributes);
  pthread_mutexattr_destroy(&attributes);
  return result(error);
}
int mtx_lock(mtx_t* mutex) { return result(pthread_mutex_lock(native(mutex))); }
int mtx_trylock(mtx_t* mutex) { return result(pthread_mutex_trylock(native(mutex))); }
int mtx_unlock(mtx_t* mutex) { return result(pthread_mutex_unlock(native(mutex))); }
void mtx_destroy(mtx_t* mutex) { pthread_mutex_destroy(native(mutex)); }
int cnd_init(cnd_t* condition) { return result(pthread_cond_init(native(condition), nullptr)); }
int cnd_signal(cnd_t* condition) { return result(pthread_cond_signal(native(condition))); }
int cnd_broadcast(cnd_t* condition) { return result(pthread_cond_broadcast(native(condition))); }
int cnd_wait(cnd_t* condition, mtx_t* mutex) { return result(pthread_cond_wait(native(condition), native(mutex))); }
int cnd_timedwait(cnd_t* __restrict condition, mtx_t* __restrict mutex, const timespec* __restrict by) {
  return result(pthread_cond_timedwait(native(condition), native(mutex), by));
}
void cnd_destroy(cnd_t* condition) { pthread_cond_destroy(native(condition)); }

/// Races inside of librdkafka are not ours to find: it is not built with the sanitizer.
const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }

/// When the process ends, handles have three seconds to be closed. On a busy machine that may be too short, and then a
/// thread is left that nobody joins.
const char* __tsan_default_suppressions() { return "thread:tenure::kafka::open\n"; }
}
#endif
