/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC's life in the process and its one completion queue thread. That thread must do nothing but
 * translate: the kubelet calls us back from inside its Register handler, so a thread that worked
 * or waited here would wait for itself. */
#include "pkg/rpc/rpc.h"

#include <errno.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/support/log.h>

#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/rpc/quiet.h"
#include "pkg/rpc/rpc-internal.h"

/* For calls that were cancelled to come back: milliseconds, unless the node is out of breath. */
#define FREE_TIMEOUT_NS (20 * WEFT_NS_PER_S)
/* For gRPC to end: milliseconds, too. But where a write had to wait for its peer, a thread of
 * gRPC's looks at the socket for 10 s at a time, whatever becomes of it (run_poller in 1.51's
 * tcp_posix.cc), and gRPC waits for that thread. A plugin that waited as well would keep its
 * successor out. */
#define SHUTDOWN_TIMEOUT_NS WEFT_NS_PER_S

/* gRPC was told to end and has not: until it has, starting it again would block. */
static atomic_bool ending;

/* gRPC's own lines are for its developers; what matters to us comes back as a status. */
static void on_grpc_log(gpr_log_func_args *args)
{
    weft_log(WEFT_LOG_DEBUG, "grpc", WEFT_KV_S("severity", gpr_log_severity_string(args->severity)),
             WEFT_KV_S("file", args->file), WEFT_KV_I("line", args->line),
             WEFT_KV_S("message", args->message));
}

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define RACE_CHECKED
#endif
#endif
#ifdef RACE_CHECKED
/* The race checker's runtime. Debian's gRPC is not built for it: its locks are not seen, its calls
 * of libc are. So this thread's accesses inside gRPC are not recorded; weft's own all are. */
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#endif

static grpc_event next_event(struct weft_rpc *rpc)
{
#ifdef RACE_CHECKED
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
#endif
    const grpc_event event =
        grpc_completion_queue_next(rpc->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
#ifdef RACE_CHECKED
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
    return event;
}

static void *translate_events(void *data)
{
    struct weft_rpc *rpc = data;
    WEFT_CHECK(rpc, WEFT_RPC_MAGIC);
    for (;;) {
        const grpc_event event = next_event(rpc);
        if (event.type == GRPC_QUEUE_SHUTDOWN) {
            return NULL;
        }
        if (event.type == GRPC_OP_COMPLETE) {
            struct weft_rpc_tag *tag = event.tag;
            (void)atomic_load_explicit(&rpc->handed, memory_order_acquire);
            tag->ok = event.success != 0;
            weft_loop_post(rpc->loop, &tag->post);
        }
    }
}

/* ---- threads ---- */

/* What grpc_init starts, and ours. */
enum { THREADS_NEEDED = 4 };

static void *wait_unlocked(void *data)
{
    pthread_mutex_t *lock = data;
    (void)pthread_mutex_lock(lock);
    (void)pthread_mutex_unlock(lock);
    return NULL;
}

/* Where the node or the container has no threads left (pids.max), gRPC does not say so: it waits
 * for ever for the one it could not start. So as many are started at once here first. */
static int try_threads(struct weft_error *err)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[THREADS_NEEDED];
    size_t count = 0;
    int rc = 0;
    (void)pthread_mutex_lock(&lock);
    while (rc == 0 && count < THREADS_NEEDED) {
        rc = pthread_create(&threads[count], NULL, wait_unlocked, &lock);
        count += rc == 0;
    }
    (void)pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    (void)pthread_mutex_destroy(&lock);
    return rc == 0 ? 0 : weft_err_errno(err, rc, "gRPC needs %d threads", THREADS_NEEDED);
}

/* gRPC is up: its queue and our thread. */
static int start_queue(struct weft_rpc *rpc, struct weft_error *err)
{
    rpc->cq = grpc_completion_queue_create_for_next(NULL);
    const int rc = pthread_create(&rpc->thread, NULL, translate_events, rpc);
    if (rc != 0) {
        grpc_completion_queue_shutdown(rpc->cq);
        grpc_completion_queue_destroy(rpc->cq);
        return weft_err_errno(err, rc, "gRPC thread");
    }
    return 0;
}

int weft_rpc_new(struct weft_loop *loop, struct weft_rpc **ret_rpc, struct weft_error *err)
{
    if (atomic_load(&ending)) {
        return weft_err_set(err, -EBUSY, WEFT_ERR_GRPC,
                            "gRPC has not ended since it was last used");
    }
    int rc = try_threads(err);
    if (rc < 0) {
        return rc;
    }
    struct weft_rpc *rpc = weft_calloc(1, sizeof(*rpc));
    if (rpc == NULL) {
        return weft_err_nomem(err);
    }
    rpc->magic = WEFT_RPC_MAGIC;
    rpc->loop = loop;
    rpc->end = weft_calloc(1, sizeof(*rpc->end)); /* now: ending must not fail */
    rc = rpc->end == NULL ? weft_err_nomem(err)
                          : weft_timer_new(loop, weft_quiet_tick, NULL, &rpc->tick, err);
    if (rc < 0) {
        weft_free(rpc->end);
        weft_free(rpc);
        return rc;
    }
    gpr_set_log_function(on_grpc_log);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
    if (!weft_quiet_one_cpu()) {
        weft_log(WEFT_LOG_DEBUG, "grpc-not-wrapped");
    }
    rc = weft_quiet_before_init(loop, err);
    if (rc == 0) {
        grpc_init();
        weft_quiet_after_init();
        rc = start_queue(rpc, err);
    }
    if (rc < 0) {
        weft_quiet_after_shutdown();
        weft_timer_free(rpc->tick);
        weft_free(rpc->end);
        weft_free(rpc);
        return rc;
    }
    weft_timer_start_aligned(rpc->tick, WEFT_QUIET_TICK_NS);
    *ret_rpc = rpc;
    return 0;
}

/* Goes on through weft_loop_stop: a second SIGTERM must not hurry us into freed memory. */
static bool run_until(struct weft_loop *loop, const bool *flag, int64_t timeout_ns)
{
    const int64_t limit = weft_clock_monotonic(weft_clock_system()) + timeout_ns;
    for (int64_t left = timeout_ns; !*flag && left > 0;
         left = limit - weft_clock_monotonic(weft_clock_system())) {
        (void)weft_loop_run_until(loop, flag, left);
    }
    return *flag;
}

static void *run_shutdown(void *data)
{
    struct weft_rpc_end *end = data;
    grpc_shutdown_blocking();
    if (atomic_exchange(&end->settled, true)) {
        weft_free(end);
        atomic_store(&ending, false);
    } else {
        weft_loop_post(end->loop, &end->post);
    }
    return NULL;
}

static void on_shutdown(void *data)
{
    struct weft_rpc_end *end = data;
    end->done = true;
}

/* grpc_shutdown_blocking waits for work that our engine runs on the loop, so another thread waits
 * while the loop goes round. False: it has not ended. */
static bool shut_grpc_down(struct weft_loop *loop, struct weft_rpc_end *end)
{
    end->loop = loop;
    end->post = (struct weft_post){.fn = on_shutdown, .data = end};
    atomic_store(&ending, true);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_shutdown, end) != 0) {
        weft_free(end);
        return false;
    }
    if (!run_until(loop, &end->done, SHUTDOWN_TIMEOUT_NS) &&
        !atomic_exchange(&end->settled, true)) {
        (void)pthread_detach(thread);
        return false;
    }
    while (!end->done) { /* it ended just now: the post is on its way */
        (void)weft_loop_run_until(loop, &end->done, SHUTDOWN_TIMEOUT_NS);
    }
    (void)pthread_join(thread, NULL);
    atomic_store(&ending, false);
    weft_free(end);
    return true;
}

bool weft_rpc_free(struct weft_rpc *rpc)
{
    if (rpc == NULL) {
        return true;
    }
    WEFT_CHECK(rpc, WEFT_RPC_MAGIC);
    weft_timer_free(weft_steal(&rpc->tick));
    rpc->idle = rpc->busy == 0;
    if (!run_until(rpc->loop, &rpc->idle, FREE_TIMEOUT_NS)) {
        weft_check_failed(__FILE__, __LINE__, "gRPC objects freed before gRPC");
    }
    grpc_completion_queue_shutdown(rpc->cq);
    (void)pthread_join(rpc->thread, NULL);
    grpc_completion_queue_destroy(rpc->cq);
    const bool ended = shut_grpc_down(rpc->loop, weft_steal(&rpc->end));
    weft_quiet_after_shutdown();
    rpc->magic = 0;
    weft_free(rpc);
    return ended;
}

void weft_rpc_hold(struct weft_rpc *rpc)
{
    WEFT_CHECK(rpc, WEFT_RPC_MAGIC);
    rpc->busy++;
}

void weft_rpc_release(struct weft_rpc *rpc)
{
    WEFT_CHECK(rpc, WEFT_RPC_MAGIC);
    rpc->busy--;
    rpc->idle = rpc->busy == 0;
}

bool weft_rpc_bytes_take(grpc_byte_buffer **buffer, grpc_slice *ret_slice)
{
    grpc_byte_buffer_reader reader;
    if (*buffer == NULL) {
        return false;
    }
    const bool readable = grpc_byte_buffer_reader_init(&reader, *buffer) != 0;
    if (readable) {
        *ret_slice = grpc_byte_buffer_reader_readall(&reader);
        grpc_byte_buffer_reader_destroy(&reader);
    }
    grpc_byte_buffer_destroy(*buffer);
    *buffer = NULL;
    return readable;
}

grpc_byte_buffer *weft_rpc_bytes_new(const void *bytes, size_t len)
{
    grpc_slice slice = grpc_slice_from_copied_buffer(len > 0 ? bytes : "", len);
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

int weft_rpc_result_error(const struct weft_rpc_result *result, struct weft_error *err)
{
    static const struct {
        int code, rc;
    } codes[] = {{WEFT_RPC_DEADLINE_EXCEEDED, -ETIMEDOUT},
                 {WEFT_RPC_UNIMPLEMENTED, -ENOTSUP},
                 {WEFT_RPC_UNAVAILABLE, -ECONNREFUSED}};
    int rc = -EIO;
    for (size_t i = 0; i < WEFT_ARRAY_LEN(codes); i++) {
        rc = codes[i].code == result->code ? codes[i].rc : rc;
    }
    (void)weft_err_set(err, rc, WEFT_ERR_GRPC, "%s (gRPC status %d)", result->message,
                       result->code);
    if (err != NULL) {
        err->domain_code = result->code;
        err->retryable = rc == -ETIMEDOUT || rc == -ECONNREFUSED;
    }
    return rc;
}
