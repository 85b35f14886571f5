// Shows the thread sanitizer the order that `Synchronization.Mutex` makes.
//
// A mutex that is free is taken in code of ours, which is instrumented; one that is held is waited for in the Swift runtime,
// which is not, and the sanitizer would miss that what was written before the release is there after the wait. Loaded before
// that runtime, these functions stand in for its own, call them, and tell the sanitizer.
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define SWIFT_METHOD __attribute__((swiftcall))
#define SWIFT_SELF __attribute__((swift_context))

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// Of the sanitizer's runtime; absent in programs that are not built for it.
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

SWIFT_METHOD void lock_slow(uint32_t thread, SWIFT_SELF void *mutex) __asm__(LOCK_SLOW);
SWIFT_METHOD bool try_lock_slow(SWIFT_SELF void *mutex) __asm__(TRY_LOCK_SLOW);
SWIFT_METHOD void unlock_slow(SWIFT_SELF void *mutex) __asm__(UNLOCK_SLOW);

static void *of_the_runtime(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) {
        fprintf(stderr, "SynchronizationMutex.c: the Swift runtime of this toolchain has no %s, so the order that its mutexes "
                "make cannot be shown to the thread sanitizer\n", name);
        abort();
    }
    return function;
}

SWIFT_METHOD void lock_slow(uint32_t thread, SWIFT_SELF void *mutex) {
    SWIFT_METHOD void (*real)(uint32_t, SWIFT_SELF void *) = of_the_runtime(LOCK_SLOW);
    real(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT_METHOD bool try_lock_slow(SWIFT_SELF void *mutex) {
    SWIFT_METHOD bool (*real)(SWIFT_SELF void *) = of_the_runtime(TRY_LOCK_SLOW);
    bool taken = real(mutex);
    if (taken && __tsan_acquire) __tsan_acquire(mutex);
    return taken;
}

SWIFT_METHOD void unlock_slow(SWIFT_SELF void *mutex) {
    SWIFT_METHOD void (*real)(SWIFT_SELF void *) = of_the_runtime(UNLOCK_SLOW);
    if (__tsan_release) __tsan_release(mutex);
    real(mutex);
}
