/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that many hold, stored once and counted: label keys and values repeat on thousands of
 * nodes. What nobody holds any more is freed. One thread at a time. */
#ifndef WEFT_BASE_INTERN_H
#define WEFT_BASE_INTERN_H

#include <stddef.h>

#include "pkg/base/mem.h"

struct weft_intern;

/* At most max different texts. NULL without memory. */
struct weft_intern *weft_intern_new(size_t max) __attribute__((warn_unused_result));
/* Frees all texts, held or not. NULL is fine. */
void weft_intern_free(struct weft_intern *intern);
WEFT_DEFINE_AUTO(struct weft_intern, weft_intern_free)

/* The one copy of text, held once more: the same pointer for the same text, until as many unrefs.
 * NULL without memory or over max. */
const char *weft_intern_ref(struct weft_intern *intern, const char *text)
    __attribute__((warn_unused_result));
/* text is what ref gave; NULL is fine. */
void weft_intern_unref(struct weft_intern *intern, const char *text);
/* Different texts now. */
size_t weft_intern_count(const struct weft_intern *intern);

#endif
