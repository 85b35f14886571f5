// OpenSSL 3 as Swift can import it: what its headers hide in macros becomes inline functions here.
#ifndef SLUICE_COPENSSL_H
#define SLUICE_COPENSSL_H
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Call before any other function. By default, libcrypto frees its state when the process exits, while other threads may
// still use it. Later calls cost nothing.
static inline void sluice_openssl_start(void) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

// Context

static inline int sluice_ctx_set_versions(SSL_CTX *ctx, int minimum, int maximum) {
    return SSL_CTX_set_min_proto_version(ctx, minimum) == 1 && SSL_CTX_set_max_proto_version(ctx, maximum) == 1;
}

static inline void sluice_ctx_set_modes(SSL_CTX *ctx) {
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
}

static inline void sluice_ctx_use_tickets(SSL_CTX *ctx, int tickets) {
    if (tickets) SSL_CTX_clear_options(ctx, SSL_OP_NO_TICKET);
    else SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
}

static inline void sluice_ctx_prefer_server_order(SSL_CTX *ctx) {
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
}

enum { sluice_sessions_off, sluice_sessions_server, sluice_sessions_client };

static inline void sluice_ctx_set_sessions(SSL_CTX *ctx, int use, long limit) {
    switch (use) {
    case sluice_sessions_server:
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
        SSL_CTX_sess_set_cache_size(ctx, limit);
        break;
    case sluice_sessions_client:
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        break;
    default:
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    }
}

static inline long sluice_ctx_copy_ticket_keys(SSL_CTX *from, SSL_CTX *to) {
    unsigned char keys[80];
    long copied = SSL_CTX_get_tlsext_ticket_keys(from, keys, sizeof keys) == 1
        && SSL_CTX_set_tlsext_ticket_keys(to, keys, sizeof keys) == 1;
    OPENSSL_cleanse(keys, sizeof keys);
    return copied;
}

static inline long sluice_ctx_set_server_name_callback(SSL_CTX *ctx, int (*callback)(SSL *, int *, void *)) {
    return SSL_CTX_set_tlsext_servername_callback(ctx, callback);
}

// Connection

static inline long sluice_set_server_name(SSL *ssl, const char *name) {
    return SSL_set_tlsext_host_name(ssl, name);
}

static inline void sluice_suspend_verification(SSL *ssl) {
    SSL_set_retry_verify(ssl);
}

static inline void sluice_withhold_tickets(SSL *ssl) {
    SSL_set_num_tickets(ssl, 0);
}

static inline int sluice_forbid_everything(
    const SSL *ssl, const SSL_CTX *ctx, int operation, int bits, int id, void *other, void *unused) {
    (void)ssl, (void)ctx, (void)operation, (void)bits, (void)id, (void)other, (void)unused;
    return 0;
}

// Makes the next check of a signature algorithm fail, which ends a handshake with a handshake_failure alert.
static inline void sluice_refuse_signatures(SSL *ssl) {
    SSL_set_security_callback(ssl, sluice_forbid_everything);
}

static inline int sluice_is_resumable(const SSL_SESSION *session) {
    return SSL_SESSION_is_resumable(session);
}

// Whether a session of TLS 1.3 can be resumed now.
static inline int sluice_is_fresh(const SSL_SESSION *session) {
    long lifetime = SSL_SESSION_get_timeout(session), hint = (long)SSL_SESSION_get_ticket_lifetime_hint(session);
    if (hint > 0 && hint < lifetime) lifetime = hint;
    return SSL_SESSION_is_resumable(session) && SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION
        && time(NULL) < SSL_SESSION_get_time(session) + lifetime;
}

static inline int sluice_is_tls13(const SSL_SESSION *session) {
    return SSL_SESSION_get_protocol_version(session) == TLS1_3_VERSION;
}

// BIO

static inline void sluice_bio_set_retry_read(BIO *bio) {
    BIO_clear_retry_flags(bio);
    BIO_set_retry_read(bio);
}

static inline void sluice_bio_clear_retry(BIO *bio) {
    BIO_clear_retry_flags(bio);
}

// Stacks

static inline int sluice_x509_count(const STACK_OF(X509) *stack) {
    return stack ? sk_X509_num(stack) : 0;
}

static inline X509 *sluice_x509_at(const STACK_OF(X509) *stack, int index) {
    return sk_X509_value(stack, index);
}

static inline STACK_OF(X509) *sluice_x509_stack(void) {
    return sk_X509_new_null();
}

// Takes over the caller's reference.
static inline int sluice_x509_push(STACK_OF(X509) *stack, X509 *certificate) {
    return sk_X509_push(stack, certificate) > 0;
}

// Gives the caller the first certificate, or NULL when there is none.
static inline X509 *sluice_x509_shift(STACK_OF(X509) *stack) {
    return sk_X509_shift(stack);
}

static inline void sluice_x509_stack_free(STACK_OF(X509) *stack) {
    sk_X509_pop_free(stack, X509_free);
}

static inline int sluice_name_count(const STACK_OF(X509_NAME) *stack) {
    return stack ? sk_X509_NAME_num(stack) : 0;
}

static inline X509_NAME *sluice_name_at(const STACK_OF(X509_NAME) *stack, int index) {
    return sk_X509_NAME_value(stack, index);
}

// Certificates

typedef void (*sluice_name_visitor)(void *context, const unsigned char *bytes, int count);

// Calls `visit` with each DNS name among the certificate's alternative names; returns how many alternative names of any
// kind there are.
static inline int sluice_each_dns_name(const X509 *certificate, void *context, sluice_name_visitor visit) {
    GENERAL_NAMES *names = (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = names ? sk_GENERAL_NAME_num(names) : 0;
    for (int index = 0; index < count; index++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
        if (name->type != GEN_DNS) continue;
        visit(context, ASN1_STRING_get0_data(name->d.dNSName), ASN1_STRING_length(name->d.dNSName));
    }
    GENERAL_NAMES_free(names);
    return count;
}

// Calls `visit` with each alternative name that is a DNS name, an e-mail address or a URI.
static inline void sluice_each_alternative_name(const X509 *certificate, void *context, sluice_name_visitor visit) {
    GENERAL_NAMES *names = (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = names ? sk_GENERAL_NAME_num(names) : 0;
    for (int index = 0; index < count; index++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, index);
        if (name->type != GEN_DNS && name->type != GEN_EMAIL && name->type != GEN_URI) continue;
        visit(context, ASN1_STRING_get0_data(name->d.ia5), ASN1_STRING_length(name->d.ia5));
    }
    GENERAL_NAMES_free(names);
}

// Writes the subject in RFC 2253's form, UTF-8 unescaped; returns its length, or -1 if it is longer than `size` bytes.
static inline int sluice_subject_text(const X509 *certificate, char *text, int size) {
    BIO *bio = BIO_new(BIO_s_mem());
    if (!bio) return -1;
    int length = X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
    if (length < 0 || length > size || BIO_read(bio, text, size) < length) length = length == 0 ? 0 : -1;
    BIO_free(bio);
    return length;
}

// Whether the last PEM read stopped only because there was no further block.
static inline int sluice_pem_ended(void) {
    unsigned long code = ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

static inline int sluice_error_is_alert(unsigned long code) {
    int reason = ERR_GET_REASON(code);
    return ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : -1;
}

// Whether the oldest error of the queue is that the received bytes are not a TLS record.
static inline int sluice_error_is_no_tls(void) {
    unsigned long code = ERR_peek_error();
    if (ERR_GET_LIB(code) != ERR_LIB_SSL) return 0;
    switch (ERR_GET_REASON(code)) {
        case SSL_R_WRONG_VERSION_NUMBER:
        case SSL_R_PACKET_LENGTH_TOO_LONG:
        case SSL_R_HTTP_REQUEST:
        case SSL_R_HTTPS_PROXY_REQUEST: return 1;
        default: return 0;
    }
}

// The system's text of an error in the queue; NULL for one of OpenSSL.
static inline const char *sluice_system_error_text(unsigned long code) {
    return ERR_SYSTEM_ERROR(code) ? strerror((int)(code & ERR_SYSTEM_MASK)) : NULL;
}

static inline int sluice_bio_flush(BIO *bio) {
    return (int)BIO_flush(bio);
}

// A file opened for appending; if it is created, only its owner can read it; NULL with a reason in the error queue.
static inline BIO *sluice_bio_appending_in_private(const char *path) {
    // Lines are written where a handshake is under way: only to what never waits for a reader.
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    struct stat found;
    if (descriptor >= 0 && (fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode))) {
        close(descriptor);
        errno = EINVAL;
        descriptor = -1;
    }
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "ab");
    if (file == NULL) {
        ERR_raise_data(ERR_LIB_SYS, errno, "open for appending");
        if (descriptor >= 0) close(descriptor);
        return NULL;
    }
    BIO *bio = BIO_new_fp(file, BIO_CLOSE);
    if (bio == NULL) fclose(file);
    return bio;
}

static inline int sluice_path_exists(const char *path) {
    struct stat found;
    return stat(path, &found) == 0;
}

static inline int sluice_path_is_directory(const char *path) {
    struct stat found;
    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

// Declared by the C library only to those who ask for its extensions.
extern char *secure_getenv(const char *name);

// An empty value counts as none. A program with raised privileges does not listen to its environment.
static inline const char *sluice_environment(const char *name) {
    const char *value = name ? secure_getenv(name) : NULL;
    return value && *value ? value : NULL;
}

// Key generation

static inline EVP_PKEY *sluice_generate_rsa(unsigned int bits) {
    return EVP_RSA_gen(bits);
}

static inline EVP_PKEY *sluice_generate_ec(const char *curve) {
    return EVP_EC_gen(curve);
}
#endif
