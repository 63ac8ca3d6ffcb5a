/* SPDX-License-Identifier: Apache-2.0 */
/* The loop itself and the posts into it. Posts form one locked list and one eventfd wake-up, which
 * libuv merges: whoever finds the list non-empty drains it. */
#include "pkg/loop/loop.h"

#include <errno.h>

#include "pkg/base/clock.h"
#include "pkg/loop/loop-internal.h"

uint64_t weft_loop_ms(int64_t ns)
{
    return ns > 0 ? (uint64_t)((ns - 1) / WEFT_NS_PER_MS + 1) : 0;
}

/* The first queued post, off the list; NULL if there is none. */
static struct weft_post *take_first(struct weft_loop *loop)
{
    (void)pthread_mutex_lock(&loop->lock);
    struct weft_post *post = loop->first;
    if (post != NULL) {
        loop->first = post->next;
        loop->last = loop->first != NULL ? loop->last : NULL;
        post->next = NULL;
        post->queued = false;
    }
    (void)pthread_mutex_unlock(&loop->lock);
    return post;
}

static void on_wake(uv_async_t *wake)
{
    struct weft_loop *loop = wake->data;
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    /* A post may post again: such a chain gets a turn of the loop between its links, so that
     * timers and sockets are not starved. */
    (void)pthread_mutex_lock(&loop->lock);
    const struct weft_post *const last = loop->last;
    (void)pthread_mutex_unlock(&loop->lock);
    for (bool more = last != NULL; more;) {
        struct weft_post *post = take_first(loop);
        more = post != NULL && post != last;
        if (post != NULL) {
            post->fn(post->data);
        }
    }
    (void)pthread_mutex_lock(&loop->lock);
    const bool again = loop->first != NULL;
    (void)pthread_mutex_unlock(&loop->lock);
    if (again) {
        (void)uv_async_send(&loop->wake);
    }
}

int weft_loop_new(struct weft_loop **ret_loop, struct weft_error *err)
{
    weft_autofree struct weft_loop *loop = weft_calloc(1, sizeof(*loop));
    if (loop == NULL) {
        return weft_err_nomem(err);
    }
    loop->magic = WEFT_LOOP_MAGIC;
    int rc = uv_loop_init(&loop->uv);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "event loop");
    }
    rc = uv_async_init(&loop->uv, &loop->wake, on_wake);
    if (rc < 0) {
        (void)uv_loop_close(&loop->uv);
        return weft_err_errno(err, -rc, "event loop wake-up");
    }
    loop->wake.data = loop;
    (void)pthread_mutex_init(&loop->lock, NULL);
    *ret_loop = weft_steal(&loop);
    return 0;
}

void weft_loop_free(struct weft_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    if (loop->live > 0) {
        weft_check_failed(__FILE__, __LINE__, "objects of a loop freed before it");
    }
    uv_close((uv_handle_t *)&loop->wake, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop->uv) != 0) {
        weft_check_failed(__FILE__, __LINE__, "a loop without handles");
    }
    (void)pthread_mutex_destroy(&loop->lock);
    loop->magic = 0;
    weft_free(loop);
}

void weft_loop_run(struct weft_loop *loop)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

static void stop_waiting(void *data)
{
    bool *expired = data;
    *expired = true;
}

bool weft_loop_run_until(struct weft_loop *loop, const bool *done, int64_t timeout_ns)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    bool expired = false;
    weft_auto(weft_timer_free) struct weft_timer *limit = NULL;
    if (weft_timer_new(loop, stop_waiting, &expired, &limit, NULL) < 0) {
        return false;
    }
    weft_timer_start(limit, timeout_ns, 0);
    loop->stopped = false;
    while (!*done && !expired && !loop->stopped) {
        (void)uv_run(&loop->uv, UV_RUN_ONCE);
    }
    return *done;
}

void weft_loop_stop(struct weft_loop *loop)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    loop->stopped = true;
    uv_stop(&loop->uv);
}

void weft_loop_post(struct weft_loop *loop, struct weft_post *post)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    (void)pthread_mutex_lock(&loop->lock);
    const bool wake = !post->queued;
    if (!post->queued) {
        post->queued = true;
        post->next = NULL;
        if (loop->last != NULL) {
            loop->last->next = post;
        } else {
            loop->first = post;
        }
        loop->last = post;
    }
    /* Under the lock: the loop may be freed as soon as this post has run and we have let go. */
    if (wake) {
        (void)uv_async_send(&loop->wake);
    }
    (void)pthread_mutex_unlock(&loop->lock);
}

bool weft_loop_unpost(struct weft_loop *loop, struct weft_post *post)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    (void)pthread_mutex_lock(&loop->lock);
    const bool found = post->queued;
    struct weft_post *before = NULL;
    for (struct weft_post *p = found ? loop->first : NULL; p != NULL && p != post; p = p->next) {
        before = p;
    }
    if (found) {
        *(before != NULL ? &before->next : &loop->first) = post->next;
        loop->last = loop->last == post ? before : loop->last;
        post->queued = false;
        post->next = NULL;
    }
    (void)pthread_mutex_unlock(&loop->lock);
    return found;
}
