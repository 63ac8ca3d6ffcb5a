/* SPDX-License-Identifier: Apache-2.0 */
/* Kubeconfig text: what is accepted names a server that may be spoken to, and no error message
 * repeats a line of the file that holds a secret. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/kube/config-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static void check(const struct weft_kube_config *c)
{
    must(strncmp(c->server, c->tls ? "https://" : "http://", c->tls ? 8 : 7) == 0);
    must(c->host[0] != '\0' && strpbrk(c->server, " \t\r\n@?#\"\\") == NULL);
    must(c->server[strlen(c->server) - 1] != '/');
    must(c->port[0] != '\0' && strspn(c->port, "0123456789") == strlen(c->port));
    /* a certificate comes with its key, and without TLS there is nothing but this machine */
    must((c->cert.bytes != NULL || c->cert.file != NULL) ==
         (weft_secret_is_set(&c->key) || c->key_file != NULL));
    must(c->tls || strcmp(c->host, "localhost") == 0 || strcmp(c->host, "::1") == 0 ||
         strncmp(c->host, "127.", 4) == 0);
    must(!c->insecure || weft_kube_config_warning(c) != NULL);
    must(weft_kube_config_namespace(c)[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weft_kube_config *config = NULL;
    struct weft_error err = {0};
    const int rc =
        weft_kube_config_parse((const char *)data, size, "/f/kubeconfig", NULL, &config, &err);
    must((rc == 0) == (config != NULL));
    must((rc == 0) == (err.code == 0));
    if (config != NULL) {
        check(config);
    }
    weft_kube_config_free(config);
    return 0;
}
