/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates for tests, made when they are needed: nothing expires, no key is committed. */
#ifndef WEFT_TESTS_UNIT_FAKE_TLS_H
#define WEFT_TESTS_UNIT_FAKE_TLS_H

#include <openssl/ssl.h>

struct fake_ca {
    X509 *cert;
    EVP_PKEY *key;
    char *pem; /* the certificate */
};

/* Each ends the program when OpenSSL cannot do it. */
struct fake_ca *fake_ca_new(const char *name);
void fake_ca_free(struct fake_ca *ca);
/* A server context with a certificate for san ("IP:127.0.0.1" or "DNS:name") from ca. client_ca
 * (may be NULL): clients must show a certificate from it. */
SSL_CTX *fake_server_context(const struct fake_ca *ca, const char *san,
                             const struct fake_ca *client_ca);
/* A client certificate and its key as owned PEM texts. */
void fake_client_pair(const struct fake_ca *ca, const char *user, char **ret_cert, char **ret_key);

#endif
