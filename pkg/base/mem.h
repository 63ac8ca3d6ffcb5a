/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, ownership and clean-up helpers. Every heap allocation of weft goes through the
 * weft_malloc family, so that a test can make the Nth one fail (weft_mem_fail_after). Daemons get
 * NULL and return -ENOMEM; nothing here aborts on lack of memory. Any thread. */
#ifndef WEFT_BASE_MEM_H
#define WEFT_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each returns memory the caller frees with weft_free, or NULL. Zero sizes give a valid pointer. */
void *weft_malloc(size_t size) __attribute__((warn_unused_result, malloc));
void *weft_calloc(size_t count, size_t size) __attribute__((warn_unused_result, malloc));
/* Like reallocarray: NULL on overflow or lack of memory, and then p is still valid. */
void *weft_reallocarray(void *p, size_t count, size_t size) __attribute__((warn_unused_result));
void weft_free(void *p);

/* Owned copies, NULL without memory. strndup copies at most len bytes and stops at a NUL. */
char *weft_strdup(const char *text) __attribute__((warn_unused_result, malloc));
char *weft_strndup(const char *text, size_t len) __attribute__((warn_unused_result, malloc));
void *weft_memdup(const void *bytes, size_t len) __attribute__((warn_unused_result, malloc));
/* printf into owned memory; NULL without memory or for a bad format. */
char *weft_asprintf(const char *format, ...)
    __attribute__((warn_unused_result, malloc, format(printf, 1, 2)));

/* Tests only: the count-th allocation from now on (1 = the next) and all after it fail until it is
 * set to 0, which also is the start value. Returns how many allocations were asked for since the
 * last call. */
uint64_t weft_mem_fail_after(uint64_t count);
/* The same, but only that one fails: what comes after must get along. Also in a signal handler. */
uint64_t weft_mem_fail_once(uint64_t count);

/* Makes room for at least need elements of size bytes in *array (capacity *cap, in elements), by
 * doubling, at most max elements. 0, -ENOMEM, or -EFBIG over max; then nothing has changed. */
int weft_array_reserve(void **array, size_t *cap, size_t need, size_t size, size_t max)
    __attribute__((warn_unused_result));

/* Clean-up attributes: weft_autofree char *p = ...; weft_autoclose int fd = ...; */
void weft_autofree_fn(void *pp);
void weft_autoclose_fn(const int *fd);
#define weft_autofree __attribute__((cleanup(weft_autofree_fn)))
#define weft_autoclose __attribute__((cleanup(weft_autoclose_fn)))

/* Defines the clean-up function of a type: WEFT_DEFINE_AUTO(struct weft_x, weft_x_free) makes
 * weft_auto(weft_x_free) struct weft_x *x = NULL; free x at the end of its scope. */
#define WEFT_DEFINE_AUTO(type, free_fn)                                                            \
    static inline __attribute__((unused)) void free_fn##_auto(type **pp)                           \
    {                                                                                              \
        free_fn(*pp);                                                                              \
    }
#define weft_auto(free_fn) __attribute__((cleanup(free_fn##_auto)))
/* The same for values: WEFT_DEFINE_AUTO_VALUE(struct weft_buf, weft_buf_done). */
#define WEFT_DEFINE_AUTO_VALUE(type, done_fn)                                                      \
    static inline __attribute__((unused)) void done_fn##_auto(type *p)                             \
    {                                                                                              \
        done_fn(p);                                                                                \
    }

/* Hands a pointer over: the source becomes NULL, so that its clean-up frees nothing. */
#define weft_steal(pp)                                                                             \
    ({                                                                                             \
        __typeof__(*(pp)) stolen_ = *(pp);                                                         \
        *(pp) = NULL;                                                                              \
        stolen_;                                                                                   \
    })

#define WEFT_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Callbacks check the magic number that opens the struct behind their void pointer, in all builds:
 * a mix-up of pointers ends the program instead of corrupting a node's state. */
void weft_check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
#define WEFT_CHECK(p, magic_value)                                                                 \
    ((p) != NULL && (p)->magic == (magic_value) ? (void)0                                          \
                                                : weft_check_failed(__FILE__, __LINE__, #p))

#endif
