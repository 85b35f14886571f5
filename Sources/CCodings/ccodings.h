#ifndef SLUICE_CCODINGS_H
#define SLUICE_CCODINGS_H
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

// The decoding parts of libbrotlidec (version 1) and libzstd (version 1). Declared here, because the libraries are opened
// when a program first needs them: neither building nor running anything else requires them.

typedef struct {
    const char *name;
    void **function;
} sluice_codings_function;

// Opens a library and finds its functions. Returns whether all are there.
static inline int sluice_codings_open(const char *library, const sluice_codings_function *wanted, size_t count) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return 0;
    for (size_t index = 0; index < count; index++) {
        *wanted[index].function = dlsym(handle, wanted[index].name);
        if (*wanted[index].function == NULL) return 0;
    }
    return 1;
}

typedef struct {
    void *(*create)(void *(*)(void *, size_t), void (*)(void *, void *), void *);
    void (*destroy)(void *);
    int (*decompress)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
    int (*error_code)(const void *);
    const char *(*error_text)(int);
} sluice_brotli_functions;

enum {
    SLUICE_BROTLI_ERROR = 0,
    SLUICE_BROTLI_END = 1,
};

// Codes from here down are failed allocations (BROTLI_DECODER_ERROR_ALLOC_…).
static const int sluice_brotli_first_allocation_error = -21;
static const int sluice_brotli_last_allocation_error = -30;

static inline int sluice_brotli_open(sluice_brotli_functions *brotli) {
    const sluice_codings_function wanted[] = {
        {"BrotliDecoderCreateInstance", (void **)&brotli->create},
        {"BrotliDecoderDestroyInstance", (void **)&brotli->destroy},
        {"BrotliDecoderDecompressStream", (void **)&brotli->decompress},
        {"BrotliDecoderGetErrorCode", (void **)&brotli->error_code},
        {"BrotliDecoderErrorString", (void **)&brotli->error_text},
    };
    return sluice_codings_open("libbrotlidec.so.1", wanted, sizeof wanted / sizeof *wanted);
}

typedef struct {
    const void *bytes;
    size_t size;
    size_t position;
} sluice_zstd_input;

typedef struct {
    void *bytes;
    size_t size;
    size_t position;
} sluice_zstd_output;

typedef struct {
    void *(*create)(void);
    size_t (*destroy)(void *);
    size_t (*set_parameter)(void *, int, int);
    size_t (*decompress)(void *, sluice_zstd_output *, sluice_zstd_input *);
    unsigned (*is_error)(size_t);
    const char *(*error_name)(size_t);
    int (*error_code)(size_t);
} sluice_zstd_functions;

enum {
    SLUICE_ZSTD_WINDOW_LOG_MAX = 100,
    // ZSTD_error_memory_allocation.
    SLUICE_ZSTD_OUT_OF_MEMORY = 64,
};

static inline int sluice_zstd_open(sluice_zstd_functions *zstd) {
    const sluice_codings_function wanted[] = {
        {"ZSTD_createDStream", (void **)&zstd->create},
        {"ZSTD_freeDStream", (void **)&zstd->destroy},
        {"ZSTD_DCtx_setParameter", (void **)&zstd->set_parameter},
        {"ZSTD_decompressStream", (void **)&zstd->decompress},
        {"ZSTD_isError", (void **)&zstd->is_error},
        {"ZSTD_getErrorName", (void **)&zstd->error_name},
        {"ZSTD_getErrorCode", (void **)&zstd->error_code},
    };
    return sluice_codings_open("libzstd.so.1", wanted, sizeof wanted / sizeof *wanted);
}

#endif
