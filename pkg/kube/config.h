/* SPDX-License-Identifier: Apache-2.0 */
/* Where the API server is and who we are: from a kubeconfig file or from the service account of a
 * pod. Reads files (blocking, small, capped) when it is loaded and when a token file is re-read;
 * opens no connection. Secrets are struct weft_secret and are never printed. One thread at a time.
 *
 * Of a kubeconfig these are understood: current-context (or another context by name), its cluster
 * (server, certificate-authority[-data], insecure-skip-tls-verify, tls-server-name, proxy-url) and
 * user (client-certificate[-data], client-key[-data], token, tokenFile, username, password, exec);
 * auth-provider is refused with an error that says so. Relative file names count from the
 * kubeconfig's folder. Fields of other contexts are not looked at. */
#ifndef WEFT_KUBE_CONFIG_H
#define WEFT_KUBE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_kube_config;

/* Caps of what is read: a kubeconfig, and each file it names. */
enum { WEFT_KUBE_CONFIG_MAX = 1 << 20, WEFT_KUBE_CONFIG_FILE_MAX = 256 << 10 };

/* Loads the configuration a program was given: path if not NULL, else the service account if the
 * environment has KUBERNETES_SERVICE_HOST, else $KUBECONFIG (one file), else ~/.kube/config.
 * context NULL = the file's current-context. The caller owns *ret_config. Errors, each with file,
 * line and field: -errno of the files, -EFBIG over a cap, -EINVAL for bad content, -ENOTSUP for
 * auth-provider and for a helper that must ask a person, -EACCES if the helper failed, -ENOENT if
 * there is no configuration at all. */
int weft_kube_config_load(const char *path, const char *context,
                          struct weft_kube_config **ret_config, struct weft_error *err)
    __attribute__((warn_unused_result));

/* The service account of this pod: dir NULL = /var/run/secrets/kubernetes.io/serviceaccount, which
 * holds token, ca.crt and namespace; the server comes from KUBERNETES_SERVICE_HOST and _PORT. */
int weft_kube_config_in_cluster(const char *dir, struct weft_kube_config **ret_config,
                                struct weft_error *err) __attribute__((warn_unused_result));

/* The pure part of loading: text of a kubeconfig that stands (or would stand) at path. Reads no
 * file; weft_kube_config_resolve reads those it names and runs its helper program. */
int weft_kube_config_parse(const char *text, size_t len, const char *path, const char *context,
                           struct weft_kube_config **ret_config, struct weft_error *err)
    __attribute__((warn_unused_result));
int weft_kube_config_resolve(struct weft_kube_config *config, struct weft_error *err)
    __attribute__((warn_unused_result));

void weft_kube_config_free(struct weft_kube_config *config);
WEFT_DEFINE_AUTO(struct weft_kube_config, weft_kube_config_free)

/* Borrowed, as long as config lives. */
const char *weft_kube_config_server(const struct weft_kube_config *config); /* "https://h:6443" */
/* The context's or service account's namespace, "default" if it names none. */
const char *weft_kube_config_namespace(const struct weft_kube_config *config);
/* What an operator should hear once (TLS verification switched off), or NULL. */
const char *weft_kube_config_warning(const struct weft_kube_config *config);

#endif
