/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: output, exit codes, limits, and letting go of one that still runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "pkg/base/str.h"

#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)

struct seen {
    bool done;
    int status, exit_code, signal;
    size_t len;
    char text[64], errors[64];
};

static void on_done(void *data, const struct weft_child_result *result)
{
    struct seen *s = data;
    s->done = true;
    s->status = result->status;
    s->exit_code = result->exit_code;
    s->signal = result->signal;
    s->len = result->output_len;
    (void)snprintf(s->text, sizeof(s->text), "%.63s", result->output);
    (void)snprintf(s->errors, sizeof(s->errors), "%.63s", result->errors);
}

static struct seen run(const struct weft_child_options *options)
{
    struct seen s = {0};
    struct weft_loop *loop = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    struct weft_child *child = NULL;
    CHECK_INT(weft_child_new(loop, options, on_done, &s, &child, NULL), 0);
    CHECK(weft_loop_run_until(loop, &s.done, LONG_ENOUGH));
    weft_child_free(child);
    weft_loop_free(loop);
    return s;
}

static struct seen run_shell(const char *script, struct weft_child_options options)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    options.argv = argv;
    return run(&options);
}

static void output_and_exit_code_arrive(void)
{
    const struct seen s =
        run_shell("echo out; echo err >&2; exit 7",
                  (struct weft_child_options){.output_max = 100, .merge_stderr = true});
    CHECK_INT(s.status, 0);
    CHECK_INT(s.exit_code, 7);
    CHECK_INT(s.signal, 0);
    CHECK_STR(s.text, "out\nerr\n");
}

static void environment_and_arguments_arrive(void)
{
    const char *const env[] = {"WEFT_X=a b", NULL};
    const char *const argv[] = {"/bin/sh", "-c",      "printf '%s|%s|' \"$WEFT_X\" \"$1\"; cat",
                                "x",       "one two", NULL};
    const struct seen s =
        run(&(struct weft_child_options){.argv = argv, .env = env, .output_max = 100});
    CHECK_INT(s.exit_code, 0);
    CHECK_STR(s.text, "a b|one two|"); /* and cat ended: standard input is empty */
}

static void a_signal_is_told_apart(void)
{
    const struct seen s =
        run_shell("kill -TERM $$", (struct weft_child_options){.output_max = 100});
    CHECK_INT(s.exit_code, -1);
    CHECK_INT(s.signal, SIGTERM);
}

static void too_slow_is_killed(void)
{
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    const struct seen s = run_shell(
        "printf early; exec sleep 30",
        (struct weft_child_options){.output_max = 100, .timeout_ns = 300 * WEFT_NS_PER_MS});
    CHECK_INT(s.status, -ETIMEDOUT);
    CHECK_INT(s.signal, SIGKILL);
    CHECK_STR(s.text, "early");
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH / 2);
}

static void too_much_output_is_killed(void)
{
    const struct seen s = run_shell("while :; do echo 0123456789; done",
                                    (struct weft_child_options){.output_max = 5000});
    CHECK_INT(s.status, -EFBIG);
    CHECK_INT(s.signal, SIGKILL);
    CHECK(s.len <= 5000);
}

static void standard_error_is_kept_apart_and_cut(void)
{
    const struct seen s =
        run_shell("printf out; echo first >&2; i=0; while [ $i -lt 9000 ]; do echo more >&2; "
                  "i=$((i+1)); done; exit 3",
                  (struct weft_child_options){.output_max = 100, .errors_max = 10});
    CHECK_INT(s.status, 0);
    CHECK_INT(s.exit_code, 3); /* it did not block on a full pipe */
    CHECK_STR(s.text, "out");
    CHECK_STR(s.errors, "first\nmore");
}

/* Is the process of that number gone (or a corpse that nobody reaped yet)? */
static bool is_dead(const char *number)
{
    uint64_t pid = 0;
    CHECK_INT(weft_parse_u64(weft_str_trim(weft_str(number)), INT32_MAX, &pid), 0);
    char path[64], line[256] = "";
    (void)snprintf(path, sizeof(path), "/proc/%u/stat", (unsigned)pid);
    for (int i = 0; i < 200; i++) {
        FILE *f = fopen(path, "re");
        const bool there = f != NULL && fgets(line, sizeof(line), f) != NULL;
        if (f != NULL) {
            (void)fclose(f);
        }
        const char *state = there ? strrchr(line, ')') : NULL;
        if (state == NULL || strncmp(state, ") Z", 3) == 0) {
            return true;
        }
        (void)usleep(10000);
    }
    return false;
}

static void a_group_dies_with_its_child(void)
{
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    const struct seen slow =
        run_shell("sleep 30 & echo $!; exec sleep 30",
                  (struct weft_child_options){
                      .output_max = 100, .timeout_ns = 300 * WEFT_NS_PER_MS, .group = true});
    CHECK_INT(slow.status, -ETIMEDOUT);
    CHECK(is_dead(slow.text));
    const struct seen stray = run_shell(
        "sleep 30 & echo $!", (struct weft_child_options){.output_max = 100, .group = true});
    CHECK_INT(stray.status, 0);
    CHECK_INT(stray.exit_code, 0);
    CHECK(is_dead(stray.text));
    const struct seen loud =
        run_shell("yes x & yes y", (struct weft_child_options){.output_max = 9000, .group = true});
    CHECK_INT(loud.status, -EFBIG);
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH);
}

static void a_missing_program_is_an_error(void)
{
    struct weft_loop *loop = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    const char *const argv[] = {"/nonexistent/weft-no-such-program", NULL};
    struct weft_child *child = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_child_new(loop, &(struct weft_child_options){.argv = argv}, on_done, NULL,
                             &child, &err),
              -ENOENT);
    CHECK_CONTAINS(err.message, "weft-no-such-program");
    weft_loop_free(loop);
}

static void freeing_a_running_child_kills_and_reaps_it(void)
{
    struct weft_loop *loop = NULL;
    CHECK_INT(weft_loop_new(&loop, NULL), 0);
    const char *const argv[] = {"sleep", "30", NULL};
    struct seen s = {0};
    struct weft_child *child = NULL;
    CHECK_INT(
        weft_child_new(loop, &(struct weft_child_options){.argv = argv}, on_done, &s, &child, NULL),
        0);
    weft_child_free(child);
    const int64_t begin = weft_clock_monotonic(weft_clock_system());
    weft_loop_free(loop); /* waits for the killed child only */
    CHECK(weft_clock_monotonic(weft_clock_system()) - begin < LONG_ENOUGH);
    CHECK(!s.done);
}

WEFT_SUITE(loop_child, {"output and exit code arrive", output_and_exit_code_arrive},
           {"environment and arguments arrive", environment_and_arguments_arrive},
           {"a signal is told apart", a_signal_is_told_apart},
           {"too slow is killed", too_slow_is_killed},
           {"too much output is killed", too_much_output_is_killed},
           {"standard error is kept apart and cut", standard_error_is_kept_apart_and_cut},
           {"a group dies with its child", a_group_dies_with_its_child},
           {"a missing program is an error", a_missing_program_is_an_error},
           {"freeing a running child kills and reaps it",
            freeing_a_running_child_kills_and_reaps_it})
