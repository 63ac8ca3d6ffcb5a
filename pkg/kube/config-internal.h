/* SPDX-License-Identifier: Apache-2.0 */
/* What a configuration holds, for the client. Secrets stay inside their struct weft_secret. */
#ifndef WEFT_KUBE_CONFIG_INTERNAL_H
#define WEFT_KUBE_CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/secret.h"
#include "pkg/base/str.h"
#include "pkg/kube/config.h"
#include "pkg/kube/exec.h"

struct weft_json;

/* Public bytes (certificates): given, or to be read from file. */
struct weft_kube_blob {
    char *bytes;
    size_t len;
    char *file;
};

struct weft_kube_config {
    char *path;   /* of the kubeconfig or the service account's folder, for errors */
    char *server; /* scheme://host[:port][/prefix], no slash at the end */
    char *host;   /* without brackets */
    char *port;   /* digits */
    bool tls;
    char *ns;
    bool insecure; /* TLS is not verified */
    char *tls_server_name;
    char *proxy_url;
    char *warning;
    struct weft_kube_blob ca, cert;
    char *key_file, *token_file; /* to be read; NULL if not named */
    struct weft_secret key, token, password;
    char *username;
    struct weft_kube_exec *exec; /* a helper that gives the credential, or NULL */
    int64_t token_read_at;       /* monotonic; 0 = never */
    int64_t files_read_at;       /* monotonic; the certificates */
};

/* How old what was read from a file may get before the file is read again. */
#define WEFT_KUBE_TOKEN_AGE_NS (60 * INT64_C(1000000000))

/* Reads the token file again if it was last read over WEFT_KUBE_TOKEN_AGE_NS before now, or if
 * force. 1 if the token is another one now, 0 if not (or there is no file), negative errno if the
 * file cannot be read; then the old token stays. */
int weft_kube_config_refresh_token(struct weft_kube_config *config, int64_t now, bool force,
                                   struct weft_error *err) __attribute__((warn_unused_result));

/* Reads the token, the CA bundle, the client certificate and its key again, each from its file, if
 * that is due or force. Bits: 1 the token is another one now, 2 a certificate or key. */
int weft_kube_config_refresh(struct weft_kube_config *config, int64_t now, bool force)
    __attribute__((warn_unused_result));

/* Makes token the one in use: 1 if it is another one, 0 if not, -EINVAL if it is none, -ENOMEM. */
int weft_kube_config_set_token(struct weft_kube_config *config, struct weft_str token,
                               struct weft_error *err) __attribute__((warn_unused_result));

/* Takes "scheme://host[:port][/prefix]" apart into server, host, port and tls. -EINVAL with a
 * message of its own (no place), -ENOMEM. http is allowed for loopback hosts only: there is no
 * token to lose on the way. */
int weft_kube_config_set_server(struct weft_kube_config *config, const char *text,
                                struct weft_error *err) __attribute__((warn_unused_result));

#endif
