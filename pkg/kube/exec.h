/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials from a helper program, as kubeconfigs of cloud clusters name one (user.exec,
 * client.authentication.k8s.io/v1 and v1beta1): started at load, when three quarters of a
 * credential's life are over, and when the server refuses it. No request waits for the helper: the
 * old credential serves until the new one is there. */
#ifndef WEFT_KUBE_EXEC_H
#define WEFT_KUBE_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_json;
struct weft_kube_config;
struct weft_kube_exec;
struct weft_loop;

enum {
    WEFT_KUBE_EXEC_WORDS_MAX = 64,         /* arguments, and variables */
    WEFT_KUBE_EXEC_OUTPUT_MAX = 256 << 10, /* bytes the helper may print */
};

/* Reads user.exec of a kubeconfig. A command with a slash counts from the kubeconfig's folder (dir
 * NULL: none), others are looked up in PATH. -EINVAL with file:line, -ENOTSUP for a helper that
 * must talk to a person, -ENOMEM. */
int weft_kube_exec_parse(const struct weft_json *node, const char *dir,
                         struct weft_kube_exec **ret_exec, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_kube_exec_free(struct weft_kube_exec *exec);

/* Runs the helper and waits for it, at most 30 s: at program start only. Its credential goes into
 * config. Errors: of the start, -ETIMEDOUT, -EACCES if it failed, -EBADMSG for what it printed. */
int weft_kube_exec_run(struct weft_kube_config *config, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Starts the helper in the background if the credential is due, or if the server refused it
 * (force); at most every 10 s. now is monotonic. true if a new credential is on its way. */
bool weft_kube_exec_refresh(struct weft_kube_config *config, struct weft_loop *loop, int64_t now,
                            bool force);

/* What the helper printed, into config (token, certificate and key); the pure part. *ret_expires:
 * realtime in ns, 0 = never. -EBADMSG, -ENOMEM. */
int weft_kube_exec_take(struct weft_kube_config *config, const char *text, size_t len,
                        int64_t *ret_expires, struct weft_error *err)
    __attribute__((warn_unused_result));

#endif
