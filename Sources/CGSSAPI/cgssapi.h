#ifndef SLUICE_CGSSAPI_H
#define SLUICE_CGSSAPI_H
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The part of GSS-API's C bindings (RFC 2744) that HTTP authentication needs. Declared here, because the library is
// opened when a program first needs it: neither building nor running anything else requires it.

typedef struct {
    size_t length;
    void *value;
} sluice_gss_buffer;

typedef struct {
    uint32_t length;
    void *elements;
} sluice_gss_oid;

typedef struct {
    size_t count;
    sluice_gss_oid *elements;
} sluice_gss_oid_set;

// RFC 2744 §3.11.
typedef struct {
    uint32_t initiator_type;
    sluice_gss_buffer initiator;
    uint32_t acceptor_type;
    sluice_gss_buffer acceptor;
    sluice_gss_buffer application;
} sluice_gss_bindings;

typedef struct {
    uint32_t (*import_name)(uint32_t *, sluice_gss_buffer *, const sluice_gss_oid *, void **);
    uint32_t (*release_name)(uint32_t *, void **);
    // An extension of MIT Kerberos.
    uint32_t (*acquire_cred_with_password)(
        uint32_t *, void *, sluice_gss_buffer *, uint32_t, sluice_gss_oid_set *, int, void **, sluice_gss_oid_set **,
        uint32_t *);
    uint32_t (*release_cred)(uint32_t *, void **);
    uint32_t (*init_sec_context)(
        uint32_t *, void *, void **, void *, const sluice_gss_oid *, uint32_t, uint32_t, sluice_gss_bindings *,
        sluice_gss_buffer *, sluice_gss_oid **, sluice_gss_buffer *, uint32_t *, uint32_t *);
    uint32_t (*accept_sec_context)(
        uint32_t *, void **, void *, sluice_gss_buffer *, sluice_gss_bindings *, void **, sluice_gss_oid **,
        sluice_gss_buffer *, uint32_t *, uint32_t *, void **);
    uint32_t (*delete_sec_context)(uint32_t *, void **, sluice_gss_buffer *);
    uint32_t (*display_name)(uint32_t *, void *, sluice_gss_buffer *, sluice_gss_oid **);
    uint32_t (*display_status)(uint32_t *, uint32_t, int, const sluice_gss_oid *, uint32_t *, sluice_gss_buffer *);
    uint32_t (*release_buffer)(uint32_t *, sluice_gss_buffer *);
} sluice_gss_functions;

// Opens the library and finds its functions. Returns NULL, or what is missing, valid until the thread's next call.
static inline const char *sluice_gss_open(sluice_gss_functions *gss, const char *name) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return dlerror();
    const struct {
        const char *name;
        void **function;
    } wanted[] = {
        {"gss_import_name", (void **)&gss->import_name},
        {"gss_release_name", (void **)&gss->release_name},
        {"gss_acquire_cred_with_password", (void **)&gss->acquire_cred_with_password},
        {"gss_release_cred", (void **)&gss->release_cred},
        {"gss_init_sec_context", (void **)&gss->init_sec_context},
        {"gss_accept_sec_context", (void **)&gss->accept_sec_context},
        {"gss_delete_sec_context", (void **)&gss->delete_sec_context},
        {"gss_display_name", (void **)&gss->display_name},
        {"gss_display_status", (void **)&gss->display_status},
        {"gss_release_buffer", (void **)&gss->release_buffer},
    };
    for (size_t index = 0; index < sizeof wanted / sizeof *wanted; index++) {
        *wanted[index].function = dlsym(library, wanted[index].name);
        if (*wanted[index].function == NULL) return wanted[index].name;
    }
    return NULL;
}

#define SLUICE_OID(bytes) {sizeof bytes - 1, (void *)bytes}

// 1.3.6.1.5.5.2 (RFC 4178).
static const sluice_gss_oid sluice_gss_spnego = SLUICE_OID("\x2b\x06\x01\x05\x05\x02");
// 1.3.6.1.4.1.311.2.2.10 ([MS-NLMP]).
static const sluice_gss_oid sluice_gss_ntlm = SLUICE_OID("\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x0a");
// 1.2.840.113554.1.2.1.4, a service at a host (RFC 2743 §4.1).
static const sluice_gss_oid sluice_gss_service_name = SLUICE_OID("\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04");
// 1.2.840.113554.1.2.1.1 (RFC 2743 §4.2).
static const sluice_gss_oid sluice_gss_user_name = SLUICE_OID("\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x01");

enum {
    SLUICE_GSS_CONTINUE = 1,
    SLUICE_GSS_BAD_MECHANISM = 1,
    SLUICE_GSS_NO_CREDENTIAL = 7,
    SLUICE_GSS_INITIATE = 1,
};

// The calling and routine errors of a major status (RFC 2744 §3.9.1); 0 for success.
static inline uint32_t sluice_gss_error(uint32_t major) {
    return major & 0xffff0000u;
}

// The routine error alone, as a number.
static inline uint32_t sluice_gss_routine_error(uint32_t major) {
    return (major >> 16) & 0xff;
}

#endif
