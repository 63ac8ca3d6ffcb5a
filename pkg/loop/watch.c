/* SPDX-License-Identifier: Apache-2.0 */
/* Timers, signals, descriptors and folders. All four are alike: a struct that opens with a magic
 * number and holds a libuv handle, freed in the handle's close callback. */
#include <errno.h>
#include <string.h>

#include "pkg/loop/loop-internal.h"
#include "pkg/loop/loop.h"

struct weft_timer {
    uint32_t magic;
    struct weft_loop *loop;
    void (*fn)(void *data);
    void *data;
    uv_timer_t uv;
};

struct weft_signal {
    uint32_t magic;
    struct weft_loop *loop;
    void (*fn)(void *data);
    void *data;
    uv_signal_t uv;
};

struct weft_fdwatch {
    uint32_t magic;
    struct weft_loop *loop;
    void (*fn)(void *data, unsigned events);
    void *data;
    uv_poll_t uv;
};

struct weft_dirwatch {
    uint32_t magic;
    struct weft_loop *loop;
    void (*fn)(void *data, const char *name);
    void *data;
    uv_fs_event_t uv;
};

/* handle->data is the struct around it. */
static void on_closed(uv_handle_t *handle)
{
    weft_free(handle->data);
}

/* ---- timers ---- */

static void on_timer(uv_timer_t *handle)
{
    struct weft_timer *timer = handle->data;
    WEFT_CHECK(timer, WEFT_TIMER_MAGIC);
    timer->fn(timer->data);
}

int weft_timer_new(struct weft_loop *loop, void (*fn)(void *data), void *data,
                   struct weft_timer **ret_timer, struct weft_error *err)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    struct weft_timer *timer = weft_calloc(1, sizeof(*timer));
    if (timer == NULL) {
        return weft_err_nomem(err);
    }
    timer->magic = WEFT_TIMER_MAGIC;
    timer->loop = loop;
    timer->fn = fn;
    timer->data = data;
    (void)uv_timer_init(&loop->uv, &timer->uv); /* always 0 */
    timer->uv.data = timer;
    loop->live++;
    *ret_timer = timer;
    return 0;
}

void weft_timer_start(struct weft_timer *timer, int64_t delay_ns, int64_t repeat_ns)
{
    WEFT_CHECK(timer, WEFT_TIMER_MAGIC);
    uv_update_time(&timer->loop->uv); /* libuv counts from the start of the loop's turn */
    (void)uv_timer_start(&timer->uv, on_timer, weft_loop_ms(delay_ns), weft_loop_ms(repeat_ns));
}

void weft_timer_start_aligned(struct weft_timer *timer, int64_t period_ns)
{
    WEFT_CHECK(timer, WEFT_TIMER_MAGIC);
    const uint64_t period = weft_loop_ms(period_ns);
    uv_update_time(&timer->loop->uv);
    const uint64_t delay = period - uv_now(&timer->loop->uv) % period;
    (void)uv_timer_start(&timer->uv, on_timer, delay, period);
}

void weft_timer_stop(struct weft_timer *timer)
{
    WEFT_CHECK(timer, WEFT_TIMER_MAGIC);
    (void)uv_timer_stop(&timer->uv);
}

bool weft_timer_active(const struct weft_timer *timer)
{
    WEFT_CHECK(timer, WEFT_TIMER_MAGIC);
    return uv_is_active((const uv_handle_t *)&timer->uv) != 0;
}

void weft_timer_free(struct weft_timer *timer)
{
    if (timer != NULL) {
        WEFT_CHECK(timer, WEFT_TIMER_MAGIC);
        timer->magic = 0;
        timer->loop->live--;
        uv_close((uv_handle_t *)&timer->uv, on_closed);
    }
}

/* ---- signals ---- */

static void on_signal(uv_signal_t *handle, int signum)
{
    (void)signum;
    struct weft_signal *watch = handle->data;
    WEFT_CHECK(watch, WEFT_SIGNAL_MAGIC);
    watch->fn(watch->data);
}

int weft_signal_new(struct weft_loop *loop, int signum, void (*fn)(void *data), void *data,
                    struct weft_signal **ret_signal, struct weft_error *err)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    struct weft_signal *watch = weft_calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return weft_err_nomem(err);
    }
    watch->loop = loop;
    watch->fn = fn;
    watch->data = data;
    int rc = uv_signal_init(&loop->uv, &watch->uv);
    if (rc < 0) {
        weft_free(watch);
        return weft_err_errno(err, -rc, "signal %d", signum);
    }
    watch->uv.data = watch;
    rc = uv_signal_start(&watch->uv, on_signal, signum);
    if (rc < 0) {
        uv_close((uv_handle_t *)&watch->uv, on_closed);
        return weft_err_errno(err, -rc, "signal %d", signum);
    }
    watch->magic = WEFT_SIGNAL_MAGIC;
    loop->live++;
    *ret_signal = watch;
    return 0;
}

void weft_signal_free(struct weft_signal *signal_watch)
{
    if (signal_watch != NULL) {
        WEFT_CHECK(signal_watch, WEFT_SIGNAL_MAGIC);
        signal_watch->magic = 0;
        signal_watch->loop->live--;
        uv_close((uv_handle_t *)&signal_watch->uv, on_closed);
    }
}

/* ---- descriptors ---- */

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct weft_fdwatch *watch = handle->data;
    WEFT_CHECK(watch, WEFT_FDWATCH_MAGIC);
    unsigned bits = 0;
    if (status < 0) { /* libuv has stopped the handle: EPOLLERR */
        bits = WEFT_FD_READ | WEFT_FD_WRITE | WEFT_FD_ERROR;
    } else {
        bits |= (events & UV_READABLE) != 0 ? WEFT_FD_READ : 0U;
        bits |= (events & UV_WRITABLE) != 0 ? WEFT_FD_WRITE : 0U;
    }
    watch->fn(watch->data, bits);
}

int weft_fdwatch_new(struct weft_loop *loop, int fd, void (*fn)(void *data, unsigned events),
                     void *data, struct weft_fdwatch **ret_watch, struct weft_error *err)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    struct weft_fdwatch *watch = weft_calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return weft_err_nomem(err);
    }
    const int rc = uv_poll_init(&loop->uv, &watch->uv, fd);
    if (rc < 0) {
        weft_free(watch);
        return weft_err_errno(err, -rc, "watch of descriptor %d", fd);
    }
    watch->magic = WEFT_FDWATCH_MAGIC;
    watch->loop = loop;
    watch->fn = fn;
    watch->data = data;
    watch->uv.data = watch;
    loop->live++;
    *ret_watch = watch;
    return 0;
}

int weft_fdwatch_set(struct weft_fdwatch *watch, unsigned events)
{
    WEFT_CHECK(watch, WEFT_FDWATCH_MAGIC);
    int bits = 0;
    bits |= (events & WEFT_FD_READ) != 0 ? UV_READABLE : 0;
    bits |= (events & WEFT_FD_WRITE) != 0 ? UV_WRITABLE : 0;
    return bits != 0 ? uv_poll_start(&watch->uv, bits, on_poll) : uv_poll_stop(&watch->uv);
}

void weft_fdwatch_free(struct weft_fdwatch *watch)
{
    if (watch != NULL) {
        WEFT_CHECK(watch, WEFT_FDWATCH_MAGIC);
        watch->magic = 0;
        watch->loop->live--;
        uv_close((uv_handle_t *)&watch->uv, on_closed); /* off epoll before this returns */
    }
}

/* ---- folders ---- */

static void on_fs_event(uv_fs_event_t *handle, const char *name, int events, int status)
{
    (void)events;
    struct weft_dirwatch *watch = handle->data;
    WEFT_CHECK(watch, WEFT_DIRWATCH_MAGIC);
    watch->fn(watch->data, status < 0 ? NULL : name);
}

int weft_dirwatch_new(struct weft_loop *loop, const char *path,
                      void (*fn)(void *data, const char *name), void *data,
                      struct weft_dirwatch **ret_watch, struct weft_error *err)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    struct weft_dirwatch *watch = weft_calloc(1, sizeof(*watch));
    if (watch == NULL) {
        return weft_err_nomem(err);
    }
    watch->loop = loop;
    watch->fn = fn;
    watch->data = data;
    (void)uv_fs_event_init(&loop->uv, &watch->uv); /* always 0 */
    watch->uv.data = watch;
    const int rc = uv_fs_event_start(&watch->uv, on_fs_event, path, 0);
    if (rc < 0) {
        uv_close((uv_handle_t *)&watch->uv, on_closed);
        return weft_err_errno(err, -rc, "watch of folder %s", path);
    }
    watch->magic = WEFT_DIRWATCH_MAGIC;
    loop->live++;
    *ret_watch = watch;
    return 0;
}

void weft_dirwatch_free(struct weft_dirwatch *watch)
{
    if (watch != NULL) {
        WEFT_CHECK(watch, WEFT_DIRWATCH_MAGIC);
        watch->magic = 0;
        watch->loop->live--;
        uv_close((uv_handle_t *)&watch->uv, on_closed);
    }
}
