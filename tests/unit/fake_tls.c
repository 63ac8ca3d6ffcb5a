/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate authority of the test's own, over libcrypto. */
#include "tests/unit/fake_tls.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/mem.h"

static void must(int good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "fake_tls: %s\n", what);
        exit(1);
    }
}

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(ext != NULL && X509_add_ext(cert, ext, -1) == 1, value);
    X509_EXTENSION_free(ext);
}

/* An unsigned certificate for key, valid from an hour ago for a day. */
static X509 *begin_cert(EVP_PKEY *key, const char *name, long serial)
{
    X509 *cert = X509_new();
    must(cert != NULL, "X509_new");
    must(X509_set_version(cert, 2) == 1, "version");
    must(ASN1_INTEGER_set(X509_get_serialNumber(cert), serial) == 1, "serial");
    must(X509_gmtime_adj(X509_getm_notBefore(cert), -3600) != NULL, "from");
    must(X509_gmtime_adj(X509_getm_notAfter(cert), 86400L) != NULL, "to");
    must(X509_set_pubkey(cert, key) == 1, "key");
    const unsigned char *text = (const unsigned char *)name;
    must(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8, text, -1, -1,
                                    0) == 1,
         "name");
    return cert;
}

static void sign(X509 *cert, const X509 *issuer, EVP_PKEY *key)
{
    must(X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1, "issuer");
    must(X509_sign(cert, key, EVP_sha256()) > 0, "signature");
}

static char *bio_text(BIO *bio)
{
    char *data = NULL;
    const long len = BIO_get_mem_data(bio, &data);
    char *text = weft_strndup(data, (size_t)len);
    must(text != NULL, "memory");
    BIO_free(bio);
    return text;
}

static char *cert_pem(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());
    must(bio != NULL && PEM_write_bio_X509(bio, cert) == 1, "PEM");
    return bio_text(bio);
}

struct fake_ca *fake_ca_new(const char *name)
{
    struct fake_ca *ca = weft_calloc(1, sizeof(*ca));
    must(ca != NULL, "memory");
    ca->key = EVP_EC_gen("P-256");
    must(ca->key != NULL, "EC key");
    ca->cert = begin_cert(ca->key, name, 1);
    add_extension(ca->cert, ca->cert, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(ca->cert, ca->cert, NID_key_usage, "critical,keyCertSign,digitalSignature");
    sign(ca->cert, ca->cert, ca->key);
    ca->pem = cert_pem(ca->cert);
    return ca;
}

void fake_ca_free(struct fake_ca *ca)
{
    if (ca != NULL) {
        X509_free(ca->cert);
        EVP_PKEY_free(ca->key);
        weft_free(ca->pem);
        weft_free(ca);
    }
}

static X509 *issue(const struct fake_ca *ca, EVP_PKEY *key, const char *name, const char *san)
{
    X509 *cert = begin_cert(key, name, 2);
    add_extension(cert, ca->cert, NID_basic_constraints, "critical,CA:FALSE");
    if (san != NULL) {
        add_extension(cert, ca->cert, NID_subject_alt_name, san);
    }
    sign(cert, ca->cert, ca->key);
    return cert;
}

SSL_CTX *fake_server_context(const struct fake_ca *ca, const char *san,
                             const struct fake_ca *client_ca)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(ctx != NULL && key != NULL, "server context");
    X509 *cert = issue(ca, key, "kube-apiserver", san);
    must(SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1,
         "server certificate");
    if (client_ca != NULL) {
        must(X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), client_ca->cert) == 1, "client CA");
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}

void fake_client_pair(const struct fake_ca *ca, const char *user, char **ret_cert, char **ret_key)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    must(key != NULL, "EC key");
    X509 *cert = issue(ca, key, user, NULL);
    *ret_cert = cert_pem(cert);
    BIO *bio = BIO_new(BIO_s_mem());
    must(bio != NULL && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1, "PEM");
    *ret_key = bio_text(bio);
    X509_free(cert);
    EVP_PKEY_free(key);
}
