/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes with captured output. Three things end a child: it exits and its output reaches
 * the end; its time is up; it says too much. In the last two it is killed first. A grandchild that
 * keeps the pipe open past the child's exit is not waited for beyond the time limit. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/loop/loop-internal.h"
#include "pkg/loop/loop.h"

enum { CHILD_READ_SIZE = 4096 };

/* One pipe from the child. */
struct capture {
    uv_pipe_t pipe; /* its data is the child */
    struct weft_buf text;
    bool ended;
};

struct weft_child {
    uint32_t magic;
    struct weft_loop *loop;
    void (*done)(void *data, const struct weft_child_result *result); /* NULL: owner let go */
    void *data;
    uv_process_t process;
    struct capture output, errors;
    uv_timer_t timer;
    unsigned open_handles; /* of the four, not closed yet */
    bool group;            /* it leads a process group of its own */
    bool spawn_tried;      /* the process handle is initialised */
    bool running;          /* started and not reaped: its pid is ours to signal */
    bool exited, reported, freed;
    struct weft_child_result result;
    char chunk[CHILD_READ_SIZE];
};

static void destroy(struct weft_child *child)
{
    child->magic = 0;
    weft_buf_done(&child->output.text);
    weft_buf_done(&child->errors.text);
    weft_free(child);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct weft_child *child = handle->data;
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    child->open_handles--;
    if (child->freed && child->open_handles == 0) {
        destroy(child);
    }
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_handle_closed);
    }
}

/* Reports once the process is reaped and what it said ended (or was given up). */
static void report_if_complete(struct weft_child *child)
{
    if (!child->exited || !child->output.ended || !child->errors.ended || child->reported) {
        return;
    }
    child->reported = true;
    close_handle((uv_handle_t *)&child->timer);
    child->result.output = weft_buf_text(&child->output.text);
    child->result.output_len = child->output.text.len;
    child->result.errors = weft_buf_text(&child->errors.text);
    if (child->done != NULL) {
        child->done(child->data, &child->result);
    }
}

static void end_capture(struct capture *capture)
{
    capture->ended = true;
    close_handle((uv_handle_t *)&capture->pipe);
}

/* Of a group only while its leader runs or was reaped just now: later its number may be another's.
 */
static void kill_all(struct weft_child *child)
{
    if (child->group) {
        (void)kill(-(pid_t)child->process.pid, SIGKILL);
    } else if (child->running) {
        (void)uv_process_kill(&child->process, SIGKILL);
    }
}

static void give_up(struct weft_child *child, int status)
{
    if (child->result.status == 0) {
        child->result.status = status;
    }
    if (child->running) {
        kill_all(child);
    }
    end_capture(&child->output);
    end_capture(&child->errors);
    report_if_complete(child);
}

static void on_exit_status(uv_process_t *process, int64_t exit_status, int term_signal)
{
    struct weft_child *child = process->data;
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    if (child->group) {
        kill_all(child);
    }
    child->exited = true;
    child->running = false;
    child->result.exit_code = term_signal != 0 ? -1 : (int)exit_status;
    child->result.signal = term_signal;
    close_handle((uv_handle_t *)process);
    report_if_complete(child);
}

static void on_timeout(uv_timer_t *timer)
{
    struct weft_child *child = timer->data;
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    give_up(child, -ETIMEDOUT);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct weft_child *child = handle->data;
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    *buf = uv_buf_init(child->chunk, sizeof(child->chunk));
}

static void on_output(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct weft_child *child = stream->data;
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    if (n == UV_EOF) {
        end_capture(&child->output);
        report_if_complete(child);
    } else if (n < 0) {
        give_up(child, (int)n);
    } else if (n > 0) {
        const int rc = weft_buf_append(&child->output.text, buf->base, (size_t)n);
        if (rc < 0) {
            give_up(child, rc);
        }
    }
}

/* The beginning is enough: a person reads it. */
static void on_errors(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct weft_child *child = stream->data;
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    struct weft_buf *text = &child->errors.text;
    if (n < 0) {
        end_capture(&child->errors);
        report_if_complete(child);
    } else if (n > 0 && text->len < text->max) {
        const size_t room = text->max - text->len;
        (void)weft_buf_append(text, buf->base, (size_t)n < room ? (size_t)n : room);
    }
}

/* libuv's argv and environment are not const though it only passes them on to exec. */
static char **exec_vector(const char *const *strings)
{
    union {
        const char *const *in;
        char **out;
    } vector = {.in = strings};
    return vector.out;
}

/* Makes a pipe, gives its reading end to the capture. Returns the other end or -errno. */
static int open_capture(struct capture *capture)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0) {
        return -errno;
    }
    const int rc = uv_pipe_open(&capture->pipe, ends[0]);
    if (rc < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return rc;
    }
    return ends[1];
}

static int start_reading(struct weft_child *child)
{
    int rc = uv_read_start((uv_stream_t *)&child->output.pipe, on_alloc, on_output);
    if (rc == 0 && !child->errors.ended) {
        rc = uv_read_start((uv_stream_t *)&child->errors.pipe, on_alloc, on_errors);
    }
    return rc;
}

static int spawn(struct weft_child *child, const struct weft_child_options *options)
{
    weft_autoclose const int out = open_capture(&child->output);
    if (out < 0) {
        return out;
    }
    weft_autoclose const int err = child->errors.ended ? -1 : open_capture(&child->errors);
    if (!child->errors.ended && err < 0) {
        return err;
    }
    int errors_to = options->merge_stderr ? out : STDERR_FILENO;
    errors_to = err >= 0 ? err : errors_to;
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = out},
        {.flags = UV_INHERIT_FD, .data.fd = errors_to},
    };
    const uv_process_options_t how = {
        .exit_cb = on_exit_status,
        .file = options->argv[0],
        .args = exec_vector(options->argv),
        .env = options->env != NULL ? exec_vector(options->env) : NULL,
        .flags = options->group ? UV_PROCESS_DETACHED : 0,
        .stdio_count = 3,
        .stdio = stdio,
    };
    const int rc = uv_spawn(&child->loop->uv, &child->process, &how);
    child->spawn_tried = true;
    child->open_handles++;
    child->running = rc == 0;
    child->group = child->running && options->group;
    return rc < 0 ? rc : start_reading(child);
}

int weft_child_new(struct weft_loop *loop, const struct weft_child_options *options,
                   void (*done)(void *data, const struct weft_child_result *result), void *data,
                   struct weft_child **ret_child, struct weft_error *err)
{
    WEFT_CHECK(loop, WEFT_LOOP_MAGIC);
    struct weft_child *child = weft_calloc(1, sizeof(*child));
    if (child == NULL) {
        return weft_err_nomem(err);
    }
    child->magic = WEFT_CHILD_MAGIC;
    child->loop = loop;
    child->done = done;
    child->data = data;
    child->open_handles = 3; /* and the process, once spawn has tried */
    weft_buf_init(&child->output.text, options->output_max);
    weft_buf_init(&child->errors.text, options->errors_max);
    (void)uv_timer_init(&loop->uv, &child->timer);
    (void)uv_pipe_init(&loop->uv, &child->output.pipe, 0);
    (void)uv_pipe_init(&loop->uv, &child->errors.pipe, 0);
    child->timer.data = child;
    child->output.pipe.data = child;
    child->errors.pipe.data = child;
    if (options->merge_stderr || options->errors_max == 0) {
        end_capture(&child->errors);
    }
    loop->live++;
    child->process.data = child; /* uv_spawn initialises the handle but leaves data */
    const int rc = spawn(child, options);
    if (rc < 0) {
        weft_child_free(child);
        return weft_err_errno(err, -rc, "start of %s", options->argv[0]);
    }
    if (options->timeout_ns > 0) {
        uv_update_time(&loop->uv);
        (void)uv_timer_start(&child->timer, on_timeout, weft_loop_ms(options->timeout_ns), 0);
    }
    *ret_child = child;
    return 0;
}

void weft_child_free(struct weft_child *child)
{
    if (child == NULL) {
        return;
    }
    WEFT_CHECK(child, WEFT_CHILD_MAGIC);
    child->done = NULL;
    child->freed = true;
    child->loop->live--;
    if (child->open_handles == 0) {
        destroy(child);
        return;
    }
    close_handle((uv_handle_t *)&child->timer);
    end_capture(&child->output);
    end_capture(&child->errors);
    if (child->running) {
        kill_all(child); /* its handle stays until it is reaped */
    } else if (child->spawn_tried) {
        close_handle((uv_handle_t *)&child->process);
    }
}
