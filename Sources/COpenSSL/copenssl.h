// OpenSSL 3 as Swift can import it: what its headers hide in macros becomes inline functions here.
#ifndef SLUICE_COPENSSL_H
#define SLUICE_COPENSSL_H
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#endif
