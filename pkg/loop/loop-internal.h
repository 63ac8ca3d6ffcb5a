/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of pkg/loop share. Not for other folders. */
#ifndef WEFT_LOOP_LOOP_INTERNAL_H
#define WEFT_LOOP_LOOP_INTERNAL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "pkg/loop/loop.h"

struct weft_loop {
    uint32_t magic;
    uv_loop_t uv;
    uv_async_t wake;
    size_t live;  /* objects not yet freed by their owner */
    bool stopped; /* weft_loop_stop was called in this run */
    pthread_mutex_t lock;
    struct weft_post *first, *last; /* under lock */
};

enum {
    WEFT_LOOP_MAGIC = 0x4c6f6f70,     /* "Loop" */
    WEFT_TIMER_MAGIC = 0x54696d72,    /* "Timr" */
    WEFT_SIGNAL_MAGIC = 0x5369676e,   /* "Sign" */
    WEFT_FDWATCH_MAGIC = 0x46645761,  /* "FdWa" */
    WEFT_DIRWATCH_MAGIC = 0x44695761, /* "DiWa" */
    WEFT_CHILD_MAGIC = 0x4368696c     /* "Chil" */
};

/* Whole milliseconds for libuv, rounded up so that nothing fires early. */
uint64_t weft_loop_ms(int64_t ns);

#endif
