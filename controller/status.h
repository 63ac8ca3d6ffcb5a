/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps one ConfigMap as it should be: the state for people who cannot reach the metrics. It is
 * read once, written only when its content must differ, at most every ten seconds, by POST or by
 * PUT with resourceVersion, and only while may_write says so. A failure is counted, logged once and
 * tried again ever more slowly; nothing waits for it. An object of that name that is not ours is
 * left alone. Loop thread only. */
#ifndef WEFT_CONTROLLER_STATUS_H
#define WEFT_CONTROLLER_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_kube_call;
struct weft_kube_client;
struct weft_kube_op;
struct weft_loop;
struct weft_status;

/* The key of the ConfigMap that holds the document. */
#define WEFT_STATUS_KEY "status.json"

struct weft_status_env {
    /* As weft_kube_submit and weft_kube_call_cancel, whose client is client. */
    int (*submit)(struct weft_kube_client *client, const struct weft_kube_op *op,
                  struct weft_kube_call **ret_call, struct weft_error *err);
    void (*cancel)(struct weft_kube_call *call);
    struct weft_kube_client *client;
    bool (*may_write)(void *data);
    /* No request is under way any more. May not free. */
    void (*on_idle)(void *data);
    void *data;
    const char *ns, *name; /* of the ConfigMap; copied */
    const char *instance;  /* whose it is; copied */
    int64_t gap_ns;        /* between two writes; 0: ten seconds */
};

struct weft_status_stats {
    uint64_t writes, failures;
};

/* Errors: -ENOMEM. */
int weft_status_new(struct weft_loop *loop, const struct weft_status_env *env,
                    struct weft_status **ret_status, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Cancels what is under way. NULL is fine. */
void weft_status_free(struct weft_status *status);
WEFT_DEFINE_AUTO(struct weft_status, weft_status_free)

/* What it should hold from now on; copied. Writes it soon if it holds something else. Errors:
 * -ENOMEM; then it stays as it was. */
int weft_status_set(struct weft_status *status, const char *text, size_t len,
                    struct weft_error *err) __attribute__((warn_unused_result));
/* Somebody else may have written it: it is read before the next write. Nothing is written until
 * weft_status_set is called again. */
void weft_status_forget(struct weft_status *status);
/* Is a request under way? Then on_idle follows. */
bool weft_status_busy(const struct weft_status *status);
/* Does it hold what it should, as far as is known? */
bool weft_status_current(const struct weft_status *status);
const struct weft_status_stats *weft_status_stats(const struct weft_status *status);

#endif
