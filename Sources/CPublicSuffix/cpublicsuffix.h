#ifndef SLUICE_CPUBLICSUFFIX_H
#define SLUICE_CPUBLICSUFFIX_H
#include <dlfcn.h>
#include <stddef.h>

// The part of libpsl (version 5) that cookies need. Declared here, because the library is opened when a program first
// needs it: neither building nor running anything else requires it.

typedef struct {
    // The list of the package publicsuffix, or the library's own if that is newer.
    void *(*latest)(const char *);
    int (*is_public_suffix)(const void *, const char *);
} sluice_psl_functions;

// Opens the library and finds its functions. Returns whether all are there.
static inline int sluice_psl_open(sluice_psl_functions *psl) {
    void *library = dlopen("libpsl.so.5", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return 0;
    psl->latest = (void *(*)(const char *))dlsym(library, "psl_latest");
    psl->is_public_suffix = (int (*)(const void *, const char *))dlsym(library, "psl_is_public_suffix");
    return psl->latest != NULL && psl->is_public_suffix != NULL;
}

#endif
