/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody accepted: the ConfigMap "<instance>-accepted" of the Lease's namespace, a key a
 * change. `weftctl accept` writes it; the controller reads it before its first pass and, while
 * something is held, every few seconds, and takes out what was carried out. So a word outlives a
 * restart, frees the change that it names and nothing else, and is good once. */
#ifndef WEFT_CONTROLLER_ACCEPT_H
#define WEFT_CONTROLLER_ACCEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/apply/refusal.h"
#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_accept;
struct weft_kube_client;
struct weft_loop;

struct weft_accept_options {
    struct weft_kube_client *client;
    const char *ns;
    const char *instance;
    /* Something else is accepted than before, or the first answer came. */
    void (*changed)(void *data);
    void *data;
};

/* client is borrowed, texts are copied. -ENOMEM. */
int weft_accept_new(struct weft_loop *loop, const struct weft_accept_options *options,
                    struct weft_accept **ret_accept, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_accept_free(struct weft_accept *accept);
WEFT_DEFINE_AUTO(struct weft_accept, weft_accept_free)

/* Asks for the first time, unless that is done. */
void weft_accept_ask(struct weft_accept *accept);
/* Has the first question been answered, even by an error? */
bool weft_accept_known(const struct weft_accept *accept);
const struct weft_acceptance *weft_accept_list(const struct weft_accept *accept, size_t *ret_count);
/* Something is held: asks now and then, until nothing is. */
void weft_accept_watch(struct weft_accept *accept, bool held);
/* A pass used these (bit i: item i of the list). */
void weft_accept_used(struct weft_accept *accept, uint64_t used);
/* All that was used is carried out: takes it out of the ConfigMap. */
void weft_accept_carried_out(struct weft_accept *accept);

#endif
