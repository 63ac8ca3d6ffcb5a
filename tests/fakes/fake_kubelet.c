/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the kubelet's device manager, for the demo, the tests and the bench: it takes
 * registrations, calls the plugin back as the kubelet does (options inside Register, then
 * ListAndWatch), and plays pods that ask for devices. What it sees it prints, one line an event:
 * "<event> key=value …". It reads commands from standard input, one a line:
 *
 *   ask N                        a pod with N devices: preferred allocation, then Allocate
 *   release                      all devices are free again
 *   prefer N AVAILABLE [MUST]    only the question (ids comma separated)
 *   allocate IDS                 only the allocation
 *   call METHOD                  a unary call with an empty message
 *   wait N                       until a list with N healthy devices has come
 *   end-stream                   drops ListAndWatch
 *   restart                      what a restarted kubelet does to the folder
 *   hang on|off                  whether Register stays without an answer
 *   find SOCKET                  what the plugin watcher does with a socket in its folder
 *   refuse on|off                whether it then says that it could not register it
 *   quit
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pkg/base/str.h"
#include "tests/fakes/kubelet/standin.h"

enum { COMMANDS_MAX = 1 << 16 };

static const char usage[] =
    "usage: fake_kubelet --dir DIR [--ask N]... [--timeout SECONDS]\n"
    "A stand-in for the kubelet: serves DIR/kubelet.sock, prints what a device plugin does, plays\n"
    "a pod that asks for N devices for each --ask and then ends; without --ask it reads commands\n"
    "from standard input until its end. Exit: 0, 1 after a failed ask or the timeout, 2 wrong "
    "use.\n";

void standin_say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    (void)vprintf(format, ap);
    va_end(ap);
    (void)putchar('\n');
    (void)fflush(stdout);
}

void standin_end(struct standin *k)
{
    weft_loop_stop(k->loop);
}

/* The command at hand is done. */
void standin_next(struct standin *k)
{
    weft_rpc_request_free(weft_steal(&k->request));
    weft_pb_arena_reset(&k->arena);
    weft_timer_start(k->timer, 0, 0);
}

/* ---- commands ---- */

static size_t split_ids(struct standin *k, struct weft_str text, const char **ids)
{
    size_t count = 0;
    struct weft_str id;
    while (count < STANDIN_IDS_MAX && text.len > 0 && weft_str_split(&text, ',', &id)) {
        char *copy = weft_pb_arena_alloc(&k->arena, id.len + 1);
        if (copy != NULL) {
            memcpy(copy, id.data, id.len);
            ids[count++] = copy;
        }
    }
    return count;
}

static void command_prefer(struct standin *k, struct weft_str rest, int64_t size)
{
    const char *available[STANDIN_IDS_MAX], *required[STANDIN_IDS_MAX];
    struct weft_str word = {"", 0};
    struct weft_kubelet_preferred question = {.size = (int32_t)size};
    (void)weft_str_word(&rest, &word);
    question.available =
        (struct weft_kubelet_ids){.ids = available, .count = split_ids(k, word, available)};
    word = (struct weft_str){"", 0};
    (void)weft_str_word(&rest, &word);
    question.required =
        (struct weft_kubelet_ids){.ids = required, .count = split_ids(k, word, required)};
    standin_prefer(k, &question, standin_on_preferred);
}

static void on_called(void *data, const struct weft_rpc_result *result)
{
    struct standin *k = data;
    standin_say("called code=%d bytes=%zu message=\"%s\"", result->code, result->len,
                result->message);
    standin_next(k);
}

static void command_find(struct standin *k, struct weft_str argument)
{
    weft_autofree char *path = weft_strndup(argument.data, argument.len);
    if (path != NULL) {
        standin_find(k, path);
    }
}

static void command_call(struct standin *k, struct weft_str method)
{
    /* gRPC keeps the method's text until the call ends; so does the arena */
    char *path = weft_pb_arena_alloc(&k->arena, method.len + 1);
    weft_auto(weft_buf_done) struct weft_buf nothing;
    weft_buf_init(&nothing, 1);
    if (path != NULL) {
        memcpy(path, method.data, method.len);
        standin_call(k, path, &nothing, on_called);
    }
}

/* Commands that are done at once. false: not one of them. */
static bool run_simple(struct standin *k, struct weft_str word, struct weft_str rest)
{
    if (weft_str_eq(word, "end-stream")) {
        weft_rpc_request_free(weft_steal(&k->stream));
        k->listed = false;
    } else if (weft_str_eq(word, "hang")) {
        k->hang = weft_str_eq(weft_str_trim(rest), "on");
    } else if (weft_str_eq(word, "refuse")) {
        k->refuse = weft_str_eq(weft_str_trim(rest), "on");
    } else if (weft_str_eq(word, "release")) {
        standin_release(k);
    } else if (weft_str_eq(word, "quit")) {
        standin_end(k);
    } else if (weft_str_eq(word, "restart")) {
        standin_restart(k);
    } else {
        return false;
    }
    standin_say("done %.*s", WEFT_STR_ARG(word));
    return true;
}

static void run_command(struct standin *k, struct weft_str line)
{
    struct weft_str rest = line, word = {"", 0}, argument = {"", 0};
    (void)weft_str_word(&rest, &word);
    if (word.len == 0 || run_simple(k, word, rest)) {
        return;
    }
    (void)weft_str_word(&rest, &argument);
    int64_t number = 0;
    const bool numbered = weft_parse_i64(argument, -1000, 100000, &number) == 0;
    if (weft_str_eq(word, "ask") && numbered) {
        standin_ask(k, number);
    } else if (weft_str_eq(word, "wait") && numbered) {
        k->wait_healthy = number;
    } else if (weft_str_eq(word, "prefer") && numbered) {
        command_prefer(k, rest, number);
    } else if (weft_str_eq(word, "allocate")) {
        const char *ids[STANDIN_IDS_MAX];
        standin_allocate(k, ids, split_ids(k, argument, ids));
    } else if (weft_str_eq(word, "find")) {
        command_find(k, argument);
    } else if (weft_str_eq(word, "call")) {
        command_call(k, argument);
    } else {
        standin_say("error text=\"unknown command %.*s\"", WEFT_STR_ARG(word));
        k->failed = true;
    }
}

/* May the next command run? */
static bool is_free(struct standin *k)
{
    if (k->wait_healthy >= 0 && k->listed && standin_healthy(k) == (size_t)k->wait_healthy) {
        standin_say("waited healthy=%" PRId64, k->wait_healthy);
        k->wait_healthy = -1;
    }
    const struct weft_str text = {weft_buf_text(&k->commands), k->commands.len};
    return k->wait_healthy < 0 && k->request == NULL && k->registering == NULL && !k->restarting &&
           (k->listed || !weft_str_starts(text, "ask"));
}

static void run_commands(struct standin *k)
{
    while (is_free(k)) {
        struct weft_str rest = {weft_buf_text(&k->commands), k->commands.len}, line;
        const char *newline = rest.len > 0 ? memchr(rest.data, '\n', rest.len) : NULL;
        if (newline == NULL) {
            if (k->input_ended) {
                standin_end(k);
            }
            return;
        }
        (void)weft_str_line(&rest, &line);
        weft_autofree char *copy = weft_strndup(line.data, line.len);
        weft_buf_consume(&k->commands, (size_t)(newline - k->commands.data) + 1);
        if (copy != NULL) {
            run_command(k, weft_str(copy));
        }
    }
}

static void on_timer(void *data)
{
    struct standin *k = data;
    if (k->restarting) {
        k->restarting = false;
        (void)standin_serve(k);
    }
    run_commands(k);
}

static void on_limit(void *data)
{
    struct standin *k = data;
    standin_say("error text=\"timeout\"");
    k->failed = true;
    standin_end(k);
}

static void on_input(void *data, unsigned events)
{
    (void)events;
    struct standin *k = data;
    char chunk[4096];
    const ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));
    if (n > 0) {
        (void)weft_buf_append(&k->commands, chunk, (size_t)n);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        k->input_ended = true;
        weft_fdwatch_free(weft_steal(&k->input));
    }
    run_commands(k);
}

static void on_signal(void *data)
{
    standin_end(data);
}

static int read_arguments(struct standin *k, int argc, char **argv)
{
    bool asked = false;
    for (int i = 1; i + 1 < argc; i += 2) {
        int64_t number = 0;
        const bool numbered = weft_parse_i64(weft_str(argv[i + 1]), 0, 100000, &number) == 0;
        if (strcmp(argv[i], "--dir") == 0) {
            k->dir = argv[i + 1];
        } else if (strcmp(argv[i], "--ask") == 0 && numbered) {
            (void)weft_buf_printf(&k->commands, "ask %" PRId64 "\n", number);
            asked = true;
        } else if (strcmp(argv[i], "--timeout") == 0 && numbered) {
            weft_timer_start(k->limit, number * WEFT_NS_PER_S, 0);
        } else {
            return -EINVAL;
        }
    }
    k->input_ended = asked;
    return k->dir != NULL && argc % 2 == 1 ? 0 : -EINVAL;
}

static int run(struct standin *k)
{
    (void)snprintf(k->socket, sizeof(k->socket), "%s/%s", k->dir, WEFT_KUBELET_SOCKET);
    weft_auto(weft_signal_free) struct weft_signal *term = NULL;
    int rc = weft_rpc_new(k->loop, &k->rpc, NULL);
    rc = rc == 0 ? weft_signal_new(k->loop, SIGTERM, on_signal, k, &term, NULL) : rc;
    rc = rc == 0 ? standin_serve(k) : rc;
    if (rc == 0 && !k->input_ended) {
        rc = weft_fdwatch_new(k->loop, STDIN_FILENO, on_input, k, &k->input, NULL);
        rc = rc == 0 ? weft_fdwatch_set(k->input, WEFT_FD_READ) : rc;
    }
    if (rc == 0) {
        run_commands(k);
        weft_loop_run(k->loop);
    }
    weft_fdwatch_free(k->input);
    weft_rpc_request_free(k->request);
    weft_rpc_request_free(k->stream);
    weft_rpc_channel_free(k->plugin);
    weft_rpc_server_free(k->server);
    (void)weft_rpc_free(k->rpc);
    for (size_t i = 0; i < k->device_count; i++) {
        weft_free(k->devices[i].id);
    }
    return rc < 0 || k->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct standin k = {.wait_healthy = -1};
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    weft_buf_init(&k.commands, COMMANDS_MAX);
    weft_pb_arena_init(&k.arena, WEFT_KUBELET_ARENA_MAX);
    if (weft_loop_new(&k.loop, NULL) < 0 ||
        weft_timer_new(k.loop, on_timer, &k, &k.timer, NULL) < 0 ||
        weft_timer_new(k.loop, on_limit, &k, &k.limit, NULL) < 0) {
        return 1;
    }
    int rc = 2;
    if (read_arguments(&k, argc, argv) < 0) {
        (void)fputs(usage, stderr);
    } else {
        rc = run(&k);
    }
    weft_timer_free(k.timer);
    weft_timer_free(k.limit);
    weft_loop_free(k.loop);
    weft_buf_done(&k.commands);
    weft_pb_arena_done(&k.arena);
    return rc;
}
