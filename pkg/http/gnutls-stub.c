/* SPDX-License-Identifier: Apache-2.0 */
/* Stands for GnuTLS in the link of libmicrohttpd.a, which names its functions though weft never
 * asks it for TLS: the real library costs every process 2.6 MB and 3 ms. Only what runs without TLS
 * does anything; the rest ends the program, for it would mean that a plain server began to encrypt.
 *
 * All hidden: a shared library that uses GnuTLS itself must go on finding the real one. */
#include <stddef.h>
#include <stdlib.h>

#define HIDDEN __attribute__((visibility("hidden")))
#define NEVER(name)                                                                                \
    HIDDEN __attribute__((noreturn)) void name(void);                                              \
    void name(void)                                                                                \
    {                                                                                              \
        abort();                                                                                   \
    }

/* called when the server library is loaded and unloaded */
HIDDEN int gnutls_global_init(void);
int gnutls_global_init(void)
{
    return 0;
}
HIDDEN void gnutls_global_deinit(void);
void gnutls_global_deinit(void)
{
}
extern HIDDEN void *(*gnutls_malloc)(size_t size);
void *(*gnutls_malloc)(size_t size) = malloc;

NEVER(gnutls_alpn_set_protocols)
NEVER(gnutls_bye)
NEVER(gnutls_certificate_allocate_credentials)
NEVER(gnutls_certificate_free_credentials)
NEVER(gnutls_certificate_server_set_request)
NEVER(gnutls_certificate_set_dh_params)
NEVER(gnutls_certificate_set_retrieve_function2)
NEVER(gnutls_certificate_set_retrieve_function3)
NEVER(gnutls_certificate_set_x509_key_mem)
NEVER(gnutls_certificate_set_x509_key_mem2)
NEVER(gnutls_certificate_set_x509_trust_mem)
NEVER(gnutls_cipher_get)
NEVER(gnutls_credentials_set)
NEVER(gnutls_deinit)
NEVER(gnutls_dh_params_deinit)
NEVER(gnutls_dh_params_import_pkcs3)
NEVER(gnutls_dh_params_init)
NEVER(gnutls_handshake)
NEVER(gnutls_init)
NEVER(gnutls_priority_deinit)
NEVER(gnutls_priority_init)
NEVER(gnutls_priority_set)
NEVER(gnutls_protocol_get_version)
NEVER(gnutls_psk_allocate_server_credentials)
NEVER(gnutls_psk_free_server_credentials)
NEVER(gnutls_psk_set_server_credentials_function)
NEVER(gnutls_record_check_pending)
NEVER(gnutls_record_get_direction)
NEVER(gnutls_record_recv)
NEVER(gnutls_record_send)
NEVER(gnutls_session_get_ptr)
NEVER(gnutls_session_set_ptr)
NEVER(gnutls_strerror)
NEVER(gnutls_transport_set_int2)
