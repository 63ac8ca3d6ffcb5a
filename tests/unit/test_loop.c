/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order and coalescing of posts, timers, descriptors, folders, signals, and that frees
 * from inside callbacks are safe. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (5 * WEFT_NS_PER_S)

static struct weft_loop *new_loop(void)
{
    struct weft_loop *loop = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    return loop;
}

static void set_true(void *data)
{
    bool *flag = data;
    *flag = true;
}

/* ---- posts ---- */

enum { THREADS = 4, POSTS = 500 };

struct counter {
    struct weft_loop *loop;
    size_t seen[THREADS];
    size_t total;
    bool in_order, done;
};

struct numbered_post {
    struct weft_post post;
    struct counter *counter;
    size_t thread, number;
};

static void count_post(void *data)
{
    struct numbered_post *p = data;
    struct counter *c = p->counter;
    c->in_order = c->in_order && c->seen[p->thread] == p->number;
    c->seen[p->thread]++;
    c->total++;
    c->done = c->total == (size_t)THREADS * POSTS;
}

static void *post_many(void *data)
{
    struct numbered_post *posts = data;
    for (size_t i = 0; i < POSTS; i++) {
        weft_loop_post(posts[i].counter->loop, &posts[i].post);
    }
    return NULL;
}

static void posts_from_threads_arrive_once_in_order(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    struct counter counter = {.loop = loop, .in_order = true};
    weft_autofree struct numbered_post *posts =
        weft_calloc((size_t)THREADS * POSTS, sizeof(posts[0]));
    pthread_t threads[THREADS];
    for (size_t t = 0; t < THREADS; t++) {
        for (size_t i = 0; i < POSTS; i++) {
            struct numbered_post *p = &posts[t * POSTS + i];
            *p = (struct numbered_post){.counter = &counter, .thread = t, .number = i};
            p->post.fn = count_post;
            p->post.data = p;
        }
        CHECK_INT(pthread_create(&threads[t], NULL, post_many, &posts[t * POSTS]), 0);
    }
    CHECK(weft_loop_run_until(loop, &counter.done, LONG_ENOUGH));
    for (size_t t = 0; t < THREADS; t++) {
        CHECK_INT(pthread_join(threads[t], NULL), 0);
        CHECK_INT(counter.seen[t], POSTS);
    }
    CHECK(counter.in_order);
}

struct repost {
    struct weft_loop *loop;
    struct weft_post post;
    int calls;
    bool done;
};

static void post_again(void *data)
{
    struct repost *r = data;
    r->calls++;
    r->done = r->calls == 3;
    if (!r->done) {
        weft_loop_post(r->loop, &r->post);
        weft_loop_post(r->loop, &r->post); /* queued already: counts once */
    }
}

static void a_post_may_post_itself_and_counts_once(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    struct repost r = {.loop = loop};
    r.post = (struct weft_post){.fn = post_again, .data = &r};
    weft_loop_post(loop, &r.post);
    weft_loop_post(loop, &r.post);
    CHECK(weft_loop_run_until(loop, &r.done, LONG_ENOUGH));
    bool never = false;
    CHECK(!weft_loop_run_until(loop, &never, 20 * WEFT_NS_PER_MS));
    CHECK_INT(r.calls, 3);
}

static void an_unposted_post_does_not_run(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    bool ran[3] = {false, false, false};
    struct weft_post posts[3];
    for (size_t i = 0; i < 3; i++) {
        posts[i] = (struct weft_post){.fn = set_true, .data = &ran[i]};
        weft_loop_post(loop, &posts[i]);
    }
    CHECK(weft_loop_unpost(loop, &posts[1]));
    CHECK(!weft_loop_unpost(loop, &posts[1]));
    CHECK(weft_loop_run_until(loop, &ran[2], LONG_ENOUGH));
    CHECK(ran[0] && !ran[1]);
    weft_loop_post(loop, &posts[2]); /* left in the queue: freed loop drops it */
    CHECK(weft_loop_unpost(loop, &posts[2]));
    weft_loop_post(loop, &posts[1]);
    CHECK(weft_loop_run_until(loop, &ran[1], LONG_ENOUGH));
}

/* ---- timers ---- */

struct ticks {
    struct weft_timer *timer;
    int count, wanted;
    bool done;
};

static void on_tick(void *data)
{
    struct ticks *t = data;
    t->count++;
    if (t->count == t->wanted) {
        t->done = true;
        weft_timer_free(t->timer); /* from inside its own callback */
        t->timer = NULL;
    }
}

static void timers_do_not_fire_early_and_repeat(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    struct ticks t = {.wanted = 3};
    CHECK_INT(weft_timer_new(loop, on_tick, &t, &t.timer, NULL), 0);
    CHECK(!weft_timer_active(t.timer));
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    weft_timer_start(t.timer, 20 * WEFT_NS_PER_MS + 1, 10 * WEFT_NS_PER_MS);
    CHECK(weft_timer_active(t.timer));
    CHECK(weft_loop_run_until(loop, &t.done, LONG_ENOUGH));
    /* libuv's clock is whole milliseconds: one may be lost at the start */
    const int64_t took = weft_clock_monotonic(weft_clock_system()) - begin;
    CHECK(took >= 39 * WEFT_NS_PER_MS);
    CHECK_INT(t.count, 3);
}

static void a_stopped_timer_is_silent(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    bool fired = false, never = false;
    weft_auto(weft_timer_free) struct weft_timer *timer = NULL;
    CHECK_INT(weft_timer_new(loop, set_true, &fired, &timer, NULL), 0);
    weft_timer_start(timer, 5 * WEFT_NS_PER_MS, 0);
    weft_timer_stop(timer);
    CHECK(!weft_loop_run_until(loop, &never, 30 * WEFT_NS_PER_MS));
    CHECK(!fired);
    weft_timer_start(timer, -1, 0); /* in the past: at once */
    CHECK(weft_loop_run_until(loop, &fired, LONG_ENOUGH));
}

struct two {
    bool first, both;
};

static void on_first(void *data)
{
    struct two *t = data;
    t->first = true;
}

static void on_second(void *data)
{
    struct two *t = data;
    t->both = t->both || t->first;
}

static void aligned_timers_fire_together(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    struct two seen = {false, false};
    weft_auto(weft_timer_free) struct weft_timer *a = NULL, *b = NULL, *wait = NULL;
    bool later = false;
    CHECK_INT(weft_timer_new(loop, on_first, &seen, &a, NULL), 0);
    CHECK_INT(weft_timer_new(loop, on_second, &seen, &b, NULL), 0);
    CHECK_INT(weft_timer_new(loop, set_true, &later, &wait, NULL), 0);
    weft_timer_start_aligned(a, 100 * WEFT_NS_PER_MS);
    weft_timer_start(wait, 7 * WEFT_NS_PER_MS, 0); /* a plain timer would now be 7 ms behind */
    CHECK(weft_loop_run_until(loop, &later, LONG_ENOUGH));
    seen.first = false;
    weft_timer_start_aligned(b, 100 * WEFT_NS_PER_MS);
    CHECK(weft_loop_run_until(loop, &seen.first, LONG_ENOUGH));
    CHECK(weft_loop_run_until(loop, &seen.both, 3 * WEFT_NS_PER_MS));
}

static void stop_loop(void *data)
{
    weft_loop_stop(data);
}

static void run_ends_by_stop(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    weft_auto(weft_timer_free) struct weft_timer *timer = NULL;
    CHECK_INT(weft_timer_new(loop, stop_loop, loop, &timer, NULL), 0);
    weft_timer_start(timer, WEFT_NS_PER_MS, 0);
    weft_loop_run(loop);
    weft_timer_start(timer, WEFT_NS_PER_MS, 0);
    const bool never = false;
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    CHECK(!weft_loop_run_until(loop, &never, LONG_ENOUGH));
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH / 2);
}

/* ---- descriptors ---- */

struct fd_events {
    struct weft_fdwatch *watch;
    unsigned seen;
    int calls;
    bool done;
};

static void on_fd(void *data, unsigned events)
{
    struct fd_events *e = data;
    e->seen |= events;
    e->calls++;
    e->done = true;
    CHECK_INT(weft_fdwatch_set(e->watch, 0), 0);
}

static void descriptors_report_what_was_asked(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    int fds[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    struct fd_events e = {0};
    CHECK_INT(weft_fdwatch_new(loop, fds[0], on_fd, &e, &e.watch, NULL), 0);
    struct weft_fdwatch *second = NULL;
    CHECK_INT(weft_fdwatch_set(e.watch, WEFT_FD_READ), 0);
    CHECK_INT(weft_fdwatch_new(loop, fds[0], on_fd, &e, &second, NULL), -EEXIST);
    CHECK(!weft_loop_run_until(loop, &e.done, 10 * WEFT_NS_PER_MS));
    CHECK_INT(weft_fdwatch_set(e.watch, WEFT_FD_READ | WEFT_FD_WRITE), 0);
    CHECK(weft_loop_run_until(loop, &e.done, LONG_ENOUGH));
    CHECK_INT(e.seen, WEFT_FD_WRITE);
    e.done = false;
    CHECK_INT(write(fds[1], "x", 1), 1);
    CHECK_INT(weft_fdwatch_set(e.watch, WEFT_FD_READ), 0);
    CHECK(weft_loop_run_until(loop, &e.done, LONG_ENOUGH));
    CHECK_INT(e.seen, WEFT_FD_READ | WEFT_FD_WRITE);
    CHECK_INT(e.calls, 2);
    /* free, close, and watch the same number again, before the loop turns */
    weft_fdwatch_free(e.watch);
    (void)close(fds[0]);
    const int again = dup(fds[1]);
    CHECK_INT(again, fds[0]);
    CHECK_INT(weft_fdwatch_new(loop, again, on_fd, &e, &e.watch, NULL), 0);
    e.done = false;
    CHECK_INT(weft_fdwatch_set(e.watch, WEFT_FD_READ), 0); /* the peer is closed: end of file */
    CHECK(weft_loop_run_until(loop, &e.done, LONG_ENOUGH));
    weft_fdwatch_free(e.watch);
    (void)close(again);
    (void)close(fds[1]);
}

static void a_failed_connection_is_an_error_event(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    int fds[2];
    CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
    struct fd_events e = {0};
    CHECK_INT(weft_fdwatch_new(loop, fds[1], on_fd, &e, &e.watch, NULL), 0);
    (void)close(fds[0]); /* writing end without reader: EPOLLERR */
    CHECK_INT(weft_fdwatch_set(e.watch, WEFT_FD_READ), 0);
    CHECK(weft_loop_run_until(loop, &e.done, LONG_ENOUGH));
    CHECK_INT(e.seen, WEFT_FD_READ | WEFT_FD_WRITE | WEFT_FD_ERROR);
    weft_fdwatch_free(e.watch);
    (void)close(fds[1]);
}

static void files_that_cannot_be_polled_are_refused(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    struct weft_error err = {0};
    struct weft_fdwatch *watch = NULL;
    weft_autoclose int fd = open("tests/unit/test_loop.c", O_RDONLY | O_CLOEXEC);
    CHECK_INT(weft_fdwatch_new(loop, fd, on_fd, NULL, &watch, &err), -EPERM);
    CHECK_CONTAINS(err.message, "watch of descriptor");
    CHECK_INT(weft_fdwatch_new(loop, -1, on_fd, NULL, &watch, &err), -EBADF);
}

/* ---- folders ---- */

struct dir_events {
    bool seen_file, seen_any;
};

static void on_entry(void *data, const char *name)
{
    struct dir_events *e = data;
    e->seen_any = true;
    e->seen_file = e->seen_file || (name != NULL && strcmp(name, "kubelet.sock") == 0);
}

static void folders_report_new_entries(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    char path[256], file[300];
    (void)snprintf(path, sizeof(path), "%s/watched", weft_test_dir());
    (void)snprintf(file, sizeof(file), "%s/kubelet.sock", path);
    struct weft_error err = {0};
    struct dir_events e = {0};
    struct weft_dirwatch *watch = NULL;
    CHECK_INT(weft_dirwatch_new(loop, path, on_entry, &e, &watch, &err), -ENOENT);
    CHECK_CONTAINS(err.message, "watched");
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK_INT(weft_dirwatch_new(loop, path, on_entry, &e, &watch, &err), 0);
    CHECK(!weft_loop_run_until(loop, &e.seen_any, 10 * WEFT_NS_PER_MS));
    (void)close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK(weft_loop_run_until(loop, &e.seen_file, LONG_ENOUGH));
    e.seen_file = false;
    CHECK_INT(unlink(file), 0);
    CHECK(weft_loop_run_until(loop, &e.seen_file, LONG_ENOUGH));
    e.seen_any = false;
    CHECK_INT(rmdir(path), 0);
    CHECK(weft_loop_run_until(loop, &e.seen_any, LONG_ENOUGH));
    weft_dirwatch_free(watch);
    /* a new folder of the same name needs a new watch, which works */
    e.seen_file = false;
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK_INT(weft_dirwatch_new(loop, path, on_entry, &e, &watch, &err), 0);
    (void)close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    CHECK(weft_loop_run_until(loop, &e.seen_file, LONG_ENOUGH));
    weft_dirwatch_free(watch);
}

/* ---- signals ---- */

static void signals_reach_the_loop(void)
{
    weft_auto(weft_loop_free) struct weft_loop *loop = new_loop();
    bool seen = false;
    weft_auto(weft_signal_free) struct weft_signal *watch = NULL;
    CHECK_INT(weft_signal_new(loop, SIGUSR2, set_true, &seen, &watch, NULL), 0);
    CHECK_INT(kill(getpid(), SIGUSR2), 0);
    CHECK(weft_loop_run_until(loop, &seen, LONG_ENOUGH));
    struct weft_signal *bad = NULL;
    struct weft_error err = {0};
    CHECK(weft_signal_new(loop, SIGKILL, set_true, &seen, &bad, &err) < 0);
    CHECK_CONTAINS(err.message, "signal 9");
}

static void lack_of_memory_is_an_error(void)
{
    struct weft_loop *loop = NULL;
    (void)weft_mem_fail_after(1);
    CHECK_INT(weft_loop_new(&loop, NULL), -ENOMEM);
    (void)weft_mem_fail_after(0);
    weft_auto(weft_loop_free) struct weft_loop *good = new_loop();
    struct weft_timer *timer = NULL;
    struct weft_signal *sig = NULL;
    struct weft_fdwatch *fd = NULL;
    struct weft_dirwatch *dir = NULL;
    (void)weft_mem_fail_after(1);
    CHECK_INT(weft_timer_new(good, set_true, NULL, &timer, NULL), -ENOMEM);
    CHECK_INT(weft_signal_new(good, SIGUSR2, set_true, NULL, &sig, NULL), -ENOMEM);
    CHECK_INT(weft_fdwatch_new(good, 0, on_fd, NULL, &fd, NULL), -ENOMEM);
    CHECK_INT(weft_dirwatch_new(good, "/tmp", on_entry, NULL, &dir, NULL), -ENOMEM);
    (void)weft_mem_fail_after(0);
}

WEFT_SUITE(loop,
           {"posts from threads arrive once, in order", posts_from_threads_arrive_once_in_order},
           {"a post may post itself and counts once", a_post_may_post_itself_and_counts_once},
           {"an unposted post does not run", an_unposted_post_does_not_run},
           {"timers do not fire early and repeat", timers_do_not_fire_early_and_repeat},
           {"a stopped timer is silent", a_stopped_timer_is_silent},
           {"aligned timers fire together", aligned_timers_fire_together},
           {"run ends by stop", run_ends_by_stop},
           {"descriptors report what was asked", descriptors_report_what_was_asked},
           {"a failed connection is an error event", a_failed_connection_is_an_error_event},
           {"files that cannot be polled are refused", files_that_cannot_be_polled_are_refused},
           {"folders report new entries", folders_report_new_entries},
           {"signals reach the loop", signals_reach_the_loop},
           {"lack of memory is an error", lack_of_memory_is_an_error})
