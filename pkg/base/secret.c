/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that are wiped when they go. */
#include "pkg/base/secret.h"

#include <errno.h>
#include <string.h>

void weft_secret_free_bytes(char *bytes, size_t len)
{
    if (bytes != NULL) {
        explicit_bzero(bytes, len);
        weft_free(bytes);
    }
}

int weft_secret_set(struct weft_secret *secret, const char *bytes, size_t len)
{
    char *copy = weft_malloc(len + 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    if (len > 0) {
        memcpy(copy, bytes, len);
    }
    copy[len] = '\0';
    weft_secret_done(secret);
    secret->bytes_ = copy;
    secret->len_ = len;
    return 0;
}

void weft_secret_done(struct weft_secret *secret)
{
    if (secret != NULL) {
        weft_secret_free_bytes(secret->bytes_, secret->len_);
        *secret = (struct weft_secret){0};
    }
}

bool weft_secret_is_set(const struct weft_secret *secret)
{
    return secret->bytes_ != NULL;
}

bool weft_secret_eq(const struct weft_secret *secret, const char *bytes, size_t len)
{
    return secret->bytes_ != NULL && secret->len_ == len && memcmp(secret->bytes_, bytes, len) == 0;
}

const char *weft_secret_reveal(const struct weft_secret *secret, size_t *ret_len)
{
    if (ret_len != NULL) {
        *ret_len = secret->len_;
    }
    return secret->bytes_;
}

const char *weft_secret_show(const struct weft_secret *secret)
{
    return weft_secret_is_set(secret) ? "set, not shown" : "unset";
}
