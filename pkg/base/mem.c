/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation with a failure hook for tests. The counter is atomic, not locked: the gRPC thread
 * allocates too. */
#include "pkg/base/mem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic uint64_t alloc_count;
static _Atomic uint64_t alloc_fail_from;
static _Atomic uint64_t alloc_fail_to; /* the last one */

uint64_t weft_mem_fail_after(uint64_t count)
{
    atomic_store(&alloc_fail_to, UINT64_MAX);
    atomic_store(&alloc_fail_from, count);
    return atomic_exchange(&alloc_count, 0);
}

uint64_t weft_mem_fail_once(uint64_t count)
{
    const uint64_t so_far = atomic_exchange(&alloc_count, 0);
    atomic_store(&alloc_fail_to, count);
    atomic_store(&alloc_fail_from, count);
    return so_far;
}

static bool allocation_fails(void)
{
    const uint64_t now = atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed) + 1;
    const uint64_t from = atomic_load_explicit(&alloc_fail_from, memory_order_relaxed);
    return from != 0 && now >= from &&
           now <= atomic_load_explicit(&alloc_fail_to, memory_order_relaxed);
}

void *weft_malloc(size_t size)
{
    return allocation_fails() ? NULL : malloc(size > 0 ? size : 1);
}

void *weft_calloc(size_t count, size_t size)
{
    if (count == 0 || size == 0) {
        count = size = 1;
    }
    return allocation_fails() ? NULL : calloc(count, size);
}

void *weft_reallocarray(void *p, size_t count, size_t size)
{
    if (count == 0 || size == 0) {
        count = size = 1;
    }
    return allocation_fails() ? NULL : reallocarray(p, count, size);
}

void weft_free(void *p)
{
    free(p);
}

char *weft_strdup(const char *text)
{
    return weft_strndup(text, strlen(text));
}

char *weft_strndup(const char *text, size_t len)
{
    const size_t n = strnlen(text, len);
    char *copy = weft_malloc(n + 1);
    if (copy != NULL) {
        memcpy(copy, text, n);
        copy[n] = '\0';
    }
    return copy;
}

void *weft_memdup(const void *bytes, size_t len)
{
    void *copy = weft_malloc(len);
    if (copy != NULL && len > 0) {
        memcpy(copy, bytes, len);
    }
    return copy;
}

char *weft_asprintf(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    va_list again;
    va_copy(again, ap);
    const int len = vsnprintf(NULL, 0, format, ap);
    va_end(ap);
    char *text = len < 0 ? NULL : weft_malloc((size_t)len + 1);
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)len + 1, format, again);
    }
    va_end(again);
    return text;
}

int weft_array_reserve(void **array, size_t *cap, size_t need, size_t size, size_t max)
{
    if (need <= *cap) {
        return 0;
    }
    if (need > max) {
        return -EFBIG;
    }
    size_t want = *cap < 8 ? 8 : *cap;
    while (want < need) {
        want = want > max / 2 ? max : want * 2;
    }
    want = want > max ? max : want;
    void *grown = weft_reallocarray(*array, want, size);
    if (grown == NULL) {
        return -ENOMEM;
    }
    *array = grown;
    *cap = want;
    return 0;
}

void weft_autofree_fn(void *pp)
{
    void *p;
    memcpy(&p, pp, sizeof(p));
    weft_free(p);
}

void weft_autoclose_fn(const int *fd)
{
    if (*fd >= 0) {
        const int saved = errno;
        (void)close(*fd);
        errno = saved;
    }
}

void weft_check_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: %s is not what its callback was given\n", file, line, what);
    abort();
}
