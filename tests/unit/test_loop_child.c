/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes: output, exit codes, limits, and letting go of one that still runs. */
#include <errno.h>
#include <signal.h>

#include "pkg/base/clock.h"
#include "pkg/loop/loop.h"
#include "tests/unit/unit.h"

#define LONG_ENOUGH (10 * WEFT_NS_PER_S)

struct seen {
    bool done;
    int status, exit_code, signal;
    size_t len;
    char text[64];
};

static void on_done(void *data, const struct weft_child_result *result)
{
    struct seen *s = data;
    s->done = true;
    s->status = result->status;
    s->exit_code = result->exit_code;
    s->signal = result->signal;
    s->len = result->output_len;
    for (size_t i = 0; i + 1 < sizeof(s->text) && result->output[i] != '\0'; i++) {
        s->text[i] = result->output[i];
    }
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
           {"a missing program is an error", a_missing_program_is_an_error},
           {"freeing a running child kills and reaps it",
            freeing_a_running_child_kills_and_reaps_it})
