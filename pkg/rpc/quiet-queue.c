/* SPDX-License-Identifier: Apache-2.0 */
/* Measure 2, the C half: a queue of gRPC's background work, run on the loop. Reason, check and
 * fallback stand in quiet-engine.cc. gRPC has one engine a process, made once and never told to
 * go, so the queue outlives every weft_rpc: a mutable static, as gRPC itself is one. While no loop
 * is attached, work waits. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"
#include "pkg/rpc/quiet.h"

static struct {
    pthread_mutex_t lock;
    struct weft_engine_task *first; /* by due_ns, then by id */
    intptr_t last_id;
    struct weft_loop *loop;   /* NULL: nobody runs work now */
    struct weft_timer *timer; /* loop thread only */
    struct weft_post post;
} engine = {.lock = PTHREAD_MUTEX_INITIALIZER};

intptr_t weft_engine_add(int64_t delay_ns, struct weft_engine_task *task)
{
    task->due_ns = weft_clock_monotonic(weft_clock_system()) + (delay_ns > 0 ? delay_ns : 0);
    (void)pthread_mutex_lock(&engine.lock);
    task->id = ++engine.last_id;
    const intptr_t id = task->id;
    struct weft_engine_task **at = &engine.first;
    while (*at != NULL && (*at)->due_ns <= task->due_ns) {
        at = &(*at)->next;
    }
    task->next = *at;
    *at = task;
    if (engine.loop != NULL && engine.first == task) {
        weft_loop_post(engine.loop, &engine.post);
    }
    (void)pthread_mutex_unlock(&engine.lock);
    return id;
}

struct weft_engine_task *weft_engine_cancel(intptr_t id)
{
    (void)pthread_mutex_lock(&engine.lock);
    struct weft_engine_task **at = &engine.first;
    while (*at != NULL && (*at)->id != id) {
        at = &(*at)->next;
    }
    struct weft_engine_task *task = *at;
    if (task != NULL) {
        *at = task->next;
    }
    (void)pthread_mutex_unlock(&engine.lock);
    return task;
}

/* The first task if it is due, off the queue; else NULL and when to look again, -1 for never. */
static struct weft_engine_task *take_due(int64_t *ret_wait_ns)
{
    (void)pthread_mutex_lock(&engine.lock);
    struct weft_engine_task *task = engine.first;
    *ret_wait_ns = -1;
    if (task != NULL) {
        *ret_wait_ns = task->due_ns - weft_clock_monotonic(weft_clock_system());
        if (*ret_wait_ns <= 0) {
            engine.first = task->next;
        } else {
            task = NULL;
        }
    }
    (void)pthread_mutex_unlock(&engine.lock);
    return task;
}

static void run_due(void *data)
{
    (void)data;
    int64_t wait_ns = -1;
    for (struct weft_engine_task *task = take_due(&wait_ns); task != NULL;
         task = take_due(&wait_ns)) {
        weft_engine_run(task);
    }
    if (wait_ns > 0) {
        weft_timer_start(engine.timer, wait_ns, 0);
    }
}

int weft_quiet_before_init(struct weft_loop *loop, struct weft_error *err)
{
    /* an experiment of 1.51 would use the parts of our engine that do nothing */
    (void)unsetenv("GRPC_EXPERIMENTS");
    const int rc = weft_timer_new(loop, run_due, NULL, &engine.timer, err);
    if (rc < 0) {
        return rc;
    }
    weft_engine_install();
    (void)pthread_mutex_lock(&engine.lock);
    engine.post = (struct weft_post){.fn = run_due};
    engine.loop = loop;
    weft_loop_post(loop, &engine.post);
    (void)pthread_mutex_unlock(&engine.lock);
    return 0;
}

void weft_quiet_after_shutdown(void)
{
    (void)pthread_mutex_lock(&engine.lock);
    struct weft_loop *loop = engine.loop;
    engine.loop = NULL;
    (void)pthread_mutex_unlock(&engine.lock);
    if (loop != NULL) {
        (void)weft_loop_unpost(loop, &engine.post);
        weft_timer_free(engine.timer);
        engine.timer = NULL;
    }
}
