/* SPDX-License-Identifier: Apache-2.0 */
/* The event loop of weft's programs: timers, signals, file descriptors, folders, child processes,
 * and posts from other threads. A thin layer over libuv; no other folder includes uv.h.
 *
 * Threads: everything here belongs to the thread that runs the loop, but weft_loop_post, which any
 * thread may call. Callbacks run on the loop thread, one at a time, and may call any function of
 * this header except weft_loop_run*, weft_loop_free.
 *
 * Life: *_free stops at once: the callback never runs again, and a watched fd may be closed or
 * reused right after. It may be called from inside the object's own callback. The memory itself is
 * given back on a later turn of the loop. All objects must be freed before weft_loop_free. */
#ifndef WEFT_LOOP_LOOP_H
#define WEFT_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"

struct weft_loop;

/* -errno of epoll or eventfd, -ENOMEM. */
int weft_loop_new(struct weft_loop **ret_loop, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Finishes pending frees. Posts still queued are dropped unseen. An object of the loop that is
 * still alive ends the program (it would call into freed memory). NULL is fine. */
void weft_loop_free(struct weft_loop *loop);
WEFT_DEFINE_AUTO(struct weft_loop, weft_loop_free)

/* Runs callbacks until weft_loop_stop. */
void weft_loop_run(struct weft_loop *loop);
/* Runs until *done is true after some callback, or weft_loop_stop, or timeout_ns have passed.
 * Returns *done. For program starts, ends, and tests. */
bool weft_loop_run_until(struct weft_loop *loop, const bool *done, int64_t timeout_ns);
/* Makes the innermost weft_loop_run return after the callbacks that are due. */
void weft_loop_stop(struct weft_loop *loop);

/* ---- posts: the one way into the loop from other threads ---- */

/* Lives inside the poster's own struct, so that a post needs no memory and cannot fail. Zero it,
 * set fn and data, then leave it alone while it is queued. */
struct weft_post {
    void (*fn)(void *data);
    void *data;
    struct weft_post *next; /* the loop's */
    bool queued;            /* the loop's */
};

/* Any thread. fn(data) runs once on the loop thread, in the order of the posts; the post may be
 * reused or freed from inside fn. Posting a queued post again changes nothing. The loop must live
 * until the thread has posted its last. */
void weft_loop_post(struct weft_loop *loop, struct weft_post *post);
/* Loop thread. Takes a queued post back; false if it was not queued. */
bool weft_loop_unpost(struct weft_loop *loop, struct weft_post *post);

/* ---- timers ---- */

struct weft_timer;

/* A stopped timer. -ENOMEM. */
int weft_timer_new(struct weft_loop *loop, void (*fn)(void *data), void *data,
                   struct weft_timer **ret_timer, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Fires after delay_ns, then every repeat_ns (0: once); both round up to milliseconds, negative
 * counts as 0. Replaces an earlier start. */
void weft_timer_start(struct weft_timer *timer, int64_t delay_ns, int64_t repeat_ns);
/* Fires each time the loop's clock is a multiple of period_ns (> 0), so that all slow timers of a
 * program share their wake-ups. Replaces an earlier start. */
void weft_timer_start_aligned(struct weft_timer *timer, int64_t period_ns);
void weft_timer_stop(struct weft_timer *timer);
bool weft_timer_active(const struct weft_timer *timer);
void weft_timer_free(struct weft_timer *timer);
WEFT_DEFINE_AUTO(struct weft_timer, weft_timer_free)

/* ---- signals ---- */

struct weft_signal;

/* Calls fn(data) for each signum that arrives (several may become one). -errno. */
int weft_signal_new(struct weft_loop *loop, int signum, void (*fn)(void *data), void *data,
                    struct weft_signal **ret_signal, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_signal_free(struct weft_signal *signal_watch);
WEFT_DEFINE_AUTO(struct weft_signal, weft_signal_free)

/* ---- file descriptors ---- */

/* Bits. ERROR is only ever reported; READ and WRITE are then set too, so that the owner's next
 * read or write finds the reason. */
enum { WEFT_FD_READ = 1, WEFT_FD_WRITE = 2, WEFT_FD_ERROR = 4 };

struct weft_fdwatch;

/* A stopped watch on fd (a socket, pipe or other pollable file; it is made non-blocking). The
 * owner keeps the fd open while the watch lives; at most one watch an fd. Level-triggered.
 * -EEXIST for a second watch, -EPERM for a file that cannot be polled, -EBADF, -ENOMEM. */
int weft_fdwatch_new(struct weft_loop *loop, int fd, void (*fn)(void *data, unsigned events),
                     void *data, struct weft_fdwatch **ret_watch, struct weft_error *err)
    __attribute__((warn_unused_result));
/* Which events to report from now on: READ | WRITE, 0 to stop. After an ERROR was reported the
 * watch is stopped until the next call. -errno. */
int weft_fdwatch_set(struct weft_fdwatch *watch, unsigned events)
    __attribute__((warn_unused_result));
void weft_fdwatch_free(struct weft_fdwatch *watch);
WEFT_DEFINE_AUTO(struct weft_fdwatch, weft_fdwatch_free)

/* ---- folders ---- */

struct weft_dirwatch;

/* Calls fn for each change of an entry of the folder (created, removed, renamed, written,
 * attributes) and of the folder itself. name is the entry's, borrowed, NULL if unknown. It is a
 * hint that something changed: look at what is there. The watch follows the folder, not the path:
 * once the folder is gone nothing more arrives. -ENOENT, other -errno (-ENOSPC, -EMFILE: out of
 * inotify watches), -ENOMEM. */
int weft_dirwatch_new(struct weft_loop *loop, const char *path,
                      void (*fn)(void *data, const char *name), void *data,
                      struct weft_dirwatch **ret_watch, struct weft_error *err)
    __attribute__((warn_unused_result));
void weft_dirwatch_free(struct weft_dirwatch *watch);
WEFT_DEFINE_AUTO(struct weft_dirwatch, weft_dirwatch_free)

/* ---- child processes ---- */

struct weft_child;

struct weft_child_options {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
    const char *const *env;  /* NULL-terminated "K=V"; NULL: the parent's */
    size_t output_max;       /* most bytes of standard output; the child is killed beyond it */
    int64_t timeout_ns;      /* killed after that; 0: no limit */
    bool merge_stderr;       /* standard error into the output; else the parent's standard error */
    size_t errors_max; /* not with merge_stderr: keep so many bytes of standard error (more is read
                          and dropped); 0: as merge_stderr says */
    bool group;        /* in a session of its own: what it leaves behind when it exits is killed,
                          and so are all of them where it would be */
};

struct weft_child_result {
    int status;    /* 0, or why there is no good result: -ETIMEDOUT, -EFBIG, -errno of a read */
    int exit_code; /* of an exit; -1 if a signal ended it */
    int signal;    /* that ended it, 0 if none */
    const char *output; /* NUL-terminated, borrowed for the call; never NULL */
    size_t output_len;
    const char *errors; /* the beginning of standard error, likewise; "" without errors_max */
};

/* Starts a process without a terminal: standard input is /dev/null. done(data, result) runs once,
 * after it ended and its output was read to the end; the child is freed by the owner, in done or
 * later. -errno of the start (-ENOENT: no such program), -ENOMEM. */
int weft_child_new(struct weft_loop *loop, const struct weft_child_options *options,
                   void (*done)(void *data, const struct weft_child_result *result), void *data,
                   struct weft_child **ret_child, struct weft_error *err)
    __attribute__((warn_unused_result));
/* A running child is killed (SIGKILL) and reaped in the background; done is not called. */
void weft_child_free(struct weft_child *child);
WEFT_DEFINE_AUTO(struct weft_child, weft_child_free)

#endif
