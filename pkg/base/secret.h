/* SPDX-License-Identifier: Apache-2.0 */
/* A token, password or private key in memory. It is wiped before its memory is freed, never
 * printed, and compared or used only through this module: what goes to a log is weft_secret_show.
 * One thread at a time. */
#ifndef WEFT_BASE_SECRET_H
#define WEFT_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

#include "pkg/base/mem.h"

struct weft_secret {
    char *bytes_; /* NUL-terminated; NULL while unset */
    size_t len_;
};

/* Replaces the content by a copy of len bytes. 0 or -ENOMEM (then it is as it was). */
int weft_secret_set(struct weft_secret *secret, const char *bytes, size_t len)
    __attribute__((warn_unused_result));
/* Wipes and frees. */
void weft_secret_done(struct weft_secret *secret);
WEFT_DEFINE_AUTO_VALUE(struct weft_secret, weft_secret_done)

bool weft_secret_is_set(const struct weft_secret *secret);
bool weft_secret_eq(const struct weft_secret *secret, const char *bytes, size_t len);
/* The content, to hand to the one who needs it; NULL while unset. Borrowed until the next change.
 * Never for a message. */
const char *weft_secret_reveal(const struct weft_secret *secret, size_t *ret_len);
/* What a log may say: "unset" or "set, not shown". Static storage. */
const char *weft_secret_show(const struct weft_secret *secret);

/* Wipes and frees owned memory that held a secret (a file's text, a header line); NULL is fine. */
void weft_secret_free_bytes(char *bytes, size_t len);

#endif
