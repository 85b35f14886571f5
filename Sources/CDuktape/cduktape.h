#ifndef SLUICE_CDUKTAPE_H
#define SLUICE_CDUKTAPE_H
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

// The part of Duktape's interface (version 2) that a PAC script needs. Declared here, because the library is opened when
// a session first has such a script: neither building nor running anything else requires it.

typedef struct {
    void *(*create_heap)(
        void *(*)(void *, size_t), void *(*)(void *, void *, size_t), void (*)(void *, void *), void *,
        void (*)(void *, const char *));
    int (*eval_raw)(void *, const char *, size_t, unsigned);
    const char *(*get_lstring)(void *, int, size_t *);
    void (*set_top)(void *, int);
} sluice_duktape_functions;

// Evaluates a program given by pointer and length; an error becomes the result instead of a jump.
static const unsigned sluice_duktape_safe_eval = 1u << 3 | 1u << 7 | 1u << 9 | 1u << 11;

// Opens the library and finds its functions. Returns NULL, or what is missing, valid until the thread's next call.
static inline const char *sluice_duktape_open(sluice_duktape_functions *duktape, const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return dlerror();
    const struct {
        const char *name;
        void **function;
    } wanted[] = {
        {"duk_create_heap", (void **)&duktape->create_heap},
        {"duk_eval_raw", (void **)&duktape->eval_raw},
        {"duk_get_lstring", (void **)&duktape->get_lstring},
        {"duk_set_top", (void **)&duktape->set_top},
    };
    for (size_t index = 0; index < sizeof wanted / sizeof *wanted; index++) {
        *wanted[index].function = dlsym(library, wanted[index].name);
        if (*wanted[index].function == NULL) return wanted[index].name;
    }
    return NULL;
}

// Whether the thread may be cancelled at any instruction from now on. It then must call no function that takes a lock.
//
// What holds a cancellation back is its type. glibc's handler of the signal looks at the type alone: a thread that disables
// cancellation after the signal was sent is cancelled all the same.
static inline void sluice_thread_cancellable(int cancellable) {
    pthread_setcanceltype(cancellable ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
}

// Keeps a cancellation back from code without cancellation points; returns the type for `sluice_thread_restore`.
static inline int sluice_thread_shield(void) {
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    return type;
}

static inline void sluice_thread_restore(int type) { pthread_setcanceltype(type, NULL); }

// glibc 2.31.
extern int pthread_clockjoin_np(pthread_t, void **, clockid_t, const struct timespec *);

#endif
