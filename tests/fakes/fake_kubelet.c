/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for the kubelet's device manager, for the demo, the tests and the bench: it takes
 * registrations, calls the plugin back as the kubelet does (options inside Register, then
 * ListAndWatch), and plays pods that ask for devices. What it sees it prints, one line an event:
 * "<event> key=value …". It reads commands from standard input, one a line:
 *
 *   ask N                        a pod with N devices: preferred allocation, then Allocate
 *   prefer N AVAILABLE [MUST]    only the question (ids comma separated)
 *   allocate IDS                 only the allocation
 *   call METHOD                  a unary call with an empty message
 *   wait N                       until a list with N healthy devices has come
 *   end-stream                   drops ListAndWatch
 *   restart                      what a restarted kubelet does to the folder
 *   hang on|off                  whether Register stays without an answer
 *   quit
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/log.h"
#include "pkg/base/str.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/loop/loop.h"
#include "pkg/pb/arena.h"
#include "pkg/rpc/rpc.h"

enum { IDS_MAX = 1024, COMMANDS_MAX = 1 << 16, CALL_SECONDS = 10 };

static const char usage[] =
    "usage: fake_kubelet --dir DIR [--ask N]... [--timeout SECONDS]\n"
    "A stand-in for the kubelet: serves DIR/kubelet.sock, prints what a device plugin does, plays\n"
    "a pod that asks for N devices for each --ask and then ends; without --ask it reads commands\n"
    "from standard input until its end. Exit: 0, 1 after a failed ask or the timeout, 2 wrong "
    "use.\n";

struct device {
    char *id;
    bool healthy, taken;
};

struct kubelet {
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_rpc_server *server;
    struct weft_fdwatch *input;
    struct weft_timer *timer, *limit;
    const char *dir;
    char socket[512];
    struct weft_rpc_channel *plugin;
    struct weft_rpc_call *registering; /* its Register, while we ask for its options */
    struct weft_rpc_request *stream, *request;
    struct weft_kubelet_options options;
    struct weft_buf commands;
    struct weft_pb_arena arena;
    struct device devices[IDS_MAX];
    size_t device_count;
    const char *chosen[IDS_MAX]; /* of the ask at hand, into devices */
    size_t chosen_count;
    int64_t ask_size, wait_healthy;
    bool listed, hang, failed, input_ended, restarting;
};

static void run_commands(struct kubelet *k);

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    (void)vprintf(format, ap);
    va_end(ap);
    (void)putchar('\n');
    (void)fflush(stdout);
}

static void end(struct kubelet *k)
{
    weft_loop_stop(k->loop);
}

/* The command at hand is done. */
static void next(struct kubelet *k)
{
    weft_rpc_request_free(weft_steal(&k->request));
    weft_pb_arena_reset(&k->arena);
    weft_timer_start(k->timer, 0, 0);
}

/* ---- calls to the plugin ---- */

static void call(struct kubelet *k, const char *method, const struct weft_buf *bytes,
                 void (*done)(void *data, const struct weft_rpc_result *result))
{
    struct weft_error err = {0};
    const struct weft_rpc_request_options options = {.method = method,
                                                     .bytes = weft_buf_text(bytes),
                                                     .len = bytes->len,
                                                     .timeout_ns = CALL_SECONDS * WEFT_NS_PER_S,
                                                     .done = done,
                                                     .data = k};
    if (k->plugin == NULL || weft_rpc_request_new(k->plugin, &options, &k->request, &err) < 0) {
        say("error text=\"no plugin is registered\" %s", err.message);
        k->failed = true;
        next(k);
    }
}

static void say_result(struct kubelet *k, const char *what, const struct weft_rpc_result *result)
{
    say("%s-failed code=%d message=\"%s\"", what, result->code, result->message);
    k->failed = true;
    next(k);
}

static void say_grant(const struct weft_kubelet_grant *grant)
{
    for (size_t i = 0; i < grant->env_count; i++) {
        say("env %s=%s", grant->envs[i].key, grant->envs[i].value);
    }
    for (size_t i = 0; i < grant->node_count; i++) {
        say("device %s as %s %s", grant->nodes[i].host_path, grant->nodes[i].container_path,
            grant->nodes[i].permissions);
    }
}

static void on_allocated(void *data, const struct weft_rpc_result *result)
{
    struct kubelet *k = data;
    struct weft_kubelet_grants grants = {0};
    if (result->code != WEFT_RPC_OK ||
        weft_kubelet_peer_decode_grants(&k->arena, result->bytes, result->len, &grants, NULL) < 0) {
        say_result(k, "allocate", result);
        return;
    }
    for (size_t i = 0; i < grants.count; i++) {
        say_grant(&grants.containers[i]);
    }
    say("allocated containers=%zu", grants.count);
    next(k);
}

static void allocate(struct kubelet *k, const char *const *ids, size_t count)
{
    weft_auto(weft_buf_done) struct weft_buf bytes;
    weft_buf_init(&bytes, WEFT_KUBELET_MESSAGE_MAX);
    const struct weft_kubelet_ids list = {.ids = ids, .count = count};
    const struct weft_kubelet_id_lists request = {.containers = &list, .count = 1};
    if (weft_kubelet_peer_encode_allocate(&k->arena, &request, &bytes) == 0) {
        call(k, WEFT_KUBELET_ALLOCATE, &bytes, on_allocated);
    }
}

/* Takes devices as the kubelet does: the preferred ones that are free, then any. */
static void choose(struct kubelet *k, const struct weft_kubelet_ids *preferred)
{
    k->chosen_count = 0;
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < k->device_count; i++) {
            struct device *d = &k->devices[i];
            bool wanted = pass == 1;
            for (size_t p = 0; p < preferred->count && !wanted; p++) {
                wanted = strcmp(preferred->ids[p], d->id) == 0;
            }
            if (wanted && d->healthy && !d->taken && (int64_t)k->chosen_count < k->ask_size) {
                d->taken = true;
                k->chosen[k->chosen_count++] = d->id;
            }
        }
    }
}

static void say_ids(const char *event, const struct weft_kubelet_ids *ids)
{
    weft_auto(weft_buf_done) struct weft_buf line;
    weft_buf_init(&line, WEFT_KUBELET_MESSAGE_MAX);
    for (size_t i = 0; i < ids->count; i++) {
        (void)weft_buf_printf(&line, "%s%s", i > 0 ? "," : "", ids->ids[i]);
    }
    say("%s count=%zu ids=%s", event, ids->count, weft_buf_text(&line));
}

/* The answer to a question, as far as there is one. */
static bool read_preferred(struct kubelet *k, const struct weft_rpc_result *result,
                           struct weft_kubelet_ids *ret_ids)
{
    struct weft_kubelet_id_lists lists = {0};
    if (result->code != WEFT_RPC_OK ||
        weft_kubelet_peer_decode_preferred(&k->arena, result->bytes, result->len, &lists, NULL) <
            0) {
        return false;
    }
    *ret_ids = lists.count > 0 ? lists.containers[0] : (struct weft_kubelet_ids){0};
    say_ids("preferred", ret_ids);
    return true;
}

static void grant_ask(struct kubelet *k, const struct weft_kubelet_ids *preferred)
{
    choose(k, preferred);
    if ((int64_t)k->chosen_count < k->ask_size) {
        say("ask-failed reason=\"only %zu devices are free\"", k->chosen_count);
        k->failed = true;
        next(k);
        return;
    }
    say_ids("pod-gets", &(struct weft_kubelet_ids){.ids = k->chosen, .count = k->chosen_count});
    allocate(k, k->chosen, k->chosen_count);
}

static void on_ask_preferred(void *data, const struct weft_rpc_result *result)
{
    struct kubelet *k = data;
    struct weft_kubelet_ids ids = {0};
    if (!read_preferred(k, result, &ids)) { /* the kubelet fails the pod */
        say_result(k, "preferred", result);
        return;
    }
    weft_rpc_request_free(weft_steal(&k->request));
    grant_ask(k, &ids);
}

static void on_preferred(void *data, const struct weft_rpc_result *result)
{
    struct kubelet *k = data;
    struct weft_kubelet_ids ids = {0};
    if (!read_preferred(k, result, &ids)) {
        say_result(k, "preferred", result);
        return;
    }
    next(k);
}

static void prefer(struct kubelet *k, const struct weft_kubelet_preferred *question,
                   void (*done)(void *data, const struct weft_rpc_result *result))
{
    weft_auto(weft_buf_done) struct weft_buf bytes;
    weft_buf_init(&bytes, WEFT_KUBELET_MESSAGE_MAX);
    const struct weft_kubelet_preferred_request request = {.containers = question, .count = 1};
    if (weft_kubelet_peer_encode_preferred(&k->arena, &request, &bytes) == 0) {
        call(k, WEFT_KUBELET_PREFERRED, &bytes, done);
    }
}

static void ask(struct kubelet *k, int64_t size)
{
    const char *free_ids[IDS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < k->device_count; i++) { /* the kubelet's order is random: not ours */
        const struct device *d = &k->devices[k->device_count - 1 - i];
        if (d->healthy && !d->taken) {
            free_ids[count++] = d->id;
        }
    }
    k->ask_size = size;
    say("pod-asks count=%" PRId64 " free=%zu", size, count);
    if (!k->options.preferred_allocation || size > (int64_t)count) {
        grant_ask(k, &(struct weft_kubelet_ids){0});
        return;
    }
    prefer(k,
           &(struct weft_kubelet_preferred){.available = {.ids = free_ids, .count = count},
                                            .size = (int32_t)size},
           on_ask_preferred);
}

/* ---- the plugin's registration and list ---- */

static size_t healthy_count(const struct kubelet *k)
{
    size_t healthy = 0;
    for (size_t i = 0; i < k->device_count; i++) {
        healthy += k->devices[i].healthy ? 1 : 0;
    }
    return healthy;
}

static bool was_taken(const struct kubelet *k, const char *id)
{
    for (size_t i = 0; i < k->device_count; i++) {
        if (strcmp(k->devices[i].id, id) == 0) {
            return k->devices[i].taken;
        }
    }
    return false;
}

static void on_list(void *data, const void *bytes, size_t len)
{
    struct kubelet *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_devices list = {0};
    struct weft_error err = {0};
    if (weft_kubelet_peer_decode_devices(&arena, bytes, len, &list, &err) < 0 ||
        list.count > IDS_MAX) {
        say("list-failed reason=\"%s\"", err.message);
        return;
    }
    struct device fresh[IDS_MAX];
    for (size_t i = 0; i < list.count; i++) {
        fresh[i] = (struct device){.id = weft_strdup(list.devices[i].id),
                                   .healthy = list.devices[i].healthy,
                                   .taken = was_taken(k, list.devices[i].id)};
    }
    for (size_t i = 0; i < k->device_count; i++) {
        weft_free(k->devices[i].id);
    }
    memcpy(k->devices, fresh, list.count * sizeof(fresh[0]));
    k->device_count = list.count;
    k->listed = true;
    say("list devices=%zu healthy=%zu", list.count, healthy_count(k));
    for (size_t i = 0; i < list.count; i++) {
        say("id %s %s numa=%d", list.devices[i].id,
            list.devices[i].healthy ? "Healthy" : "Unhealthy", list.devices[i].numa_node);
    }
    weft_timer_start(k->timer, 0, 0);
}

static void on_stream_end(void *data, const struct weft_rpc_result *result)
{
    struct kubelet *k = data;
    say("stream-ended code=%d", result->code);
    weft_rpc_request_free(weft_steal(&k->stream));
    k->listed = false;
}

static void watch(struct kubelet *k)
{
    weft_rpc_request_free(weft_steal(&k->stream));
    const struct weft_rpc_request_options options = {.method = WEFT_KUBELET_LIST_AND_WATCH,
                                                     .message = on_list,
                                                     .done = on_stream_end,
                                                     .data = k};
    if (weft_rpc_request_new(k->plugin, &options, &k->stream, NULL) < 0) {
        say("stream-failed");
    }
}

static void on_options(void *data, const struct weft_rpc_result *result)
{
    struct kubelet *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    const bool good = result->code == WEFT_RPC_OK &&
                      weft_kubelet_peer_decode_options(&arena, result->bytes, result->len,
                                                       &k->options, NULL) == 0;
    say("options preferred=%d pre-start=%d code=%d", k->options.preferred_allocation,
        k->options.pre_start_required, result->code);
    weft_rpc_request_free(weft_steal(&k->request));
    struct weft_rpc_call *registering = weft_steal(&k->registering);
    if (registering != NULL && good) {
        weft_rpc_call_reply(registering, NULL, 0);
        watch(k);
    } else if (registering != NULL) {
        weft_rpc_call_finish(registering, WEFT_RPC_UNKNOWN, result->message);
    }
}

static void on_register(void *data, struct weft_rpc_call *rpc_call, const void *bytes, size_t len)
{
    struct kubelet *k = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_registration r = {0};
    struct weft_error err = {0};
    if (weft_kubelet_peer_decode_registration(&arena, bytes, len, &r, &err) < 0 ||
        strcmp(r.version, WEFT_KUBELET_VERSION) != 0) {
        say("register-refused version=%s reason=\"%s\"", r.version != NULL ? r.version : "",
            err.message);
        weft_rpc_call_finish(rpc_call, WEFT_RPC_UNKNOWN, "requested API version is not supported");
        return;
    }
    say("register version=%s endpoint=%s resource=%s preferred=%d hang=%d", r.version, r.endpoint,
        r.resource, r.options.preferred_allocation, k->hang);
    if (k->hang || k->request != NULL) {
        return; /* never answered */
    }
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/%s", k->dir, r.endpoint);
    weft_rpc_channel_free(weft_steal(&k->plugin));
    k->registering = rpc_call;
    if (weft_rpc_channel_new(k->rpc, path, WEFT_KUBELET_MESSAGE_MAX * 4, &k->plugin, &err) < 0) {
        weft_rpc_call_finish(weft_steal(&k->registering), WEFT_RPC_UNKNOWN, err.message);
        return;
    }
    weft_auto(weft_buf_done) struct weft_buf nothing;
    weft_buf_init(&nothing, 1);
    call(k, WEFT_KUBELET_OPTIONS, &nothing, on_options);
}

static void on_closed(void *data, struct weft_rpc_call *rpc_call)
{
    struct kubelet *k = data;
    say("register-given-up");
    if (k->registering == rpc_call) {
        k->registering = NULL;
    }
}

/* ---- the folder ---- */

/* What the kubelet does when it starts: every socket in the folder goes. */
static void wipe_sockets(const struct kubelet *k)
{
    DIR *dir = opendir(k->dir);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        weft_autofree char *path = weft_asprintf("%s/%s", k->dir, e->d_name);
        struct stat st;
        if (path != NULL && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode)) {
            (void)unlink(path);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static int serve(struct kubelet *k)
{
    static const struct weft_rpc_method methods[] = {{WEFT_KUBELET_REGISTER, on_register}};
    wipe_sockets(k);
    struct weft_error err = {0};
    const struct weft_rpc_server_options options = {
        .path = k->socket, .methods = methods, .method_count = 1, .closed = on_closed, .data = k};
    const int rc = weft_rpc_server_new(k->rpc, &options, &k->server, &err);
    if (rc < 0) {
        say("error text=\"%s\"", err.message);
    } else {
        say("serving socket=%s", k->socket);
    }
    return rc;
}

static void restart(struct kubelet *k)
{
    k->registering = NULL;
    weft_rpc_server_free(weft_steal(&k->server));
    weft_rpc_request_free(weft_steal(&k->stream));
    weft_rpc_channel_free(weft_steal(&k->plugin));
    k->listed = false;
    k->restarting = true; /* gRPC removes the old socket by name: wait for that */
    weft_timer_start(k->timer, 50 * WEFT_NS_PER_MS, 0);
}

/* ---- commands ---- */

static size_t split_ids(struct kubelet *k, struct weft_str text, const char **ids)
{
    size_t count = 0;
    struct weft_str id;
    while (count < IDS_MAX && text.len > 0 && weft_str_split(&text, ',', &id)) {
        char *copy = weft_pb_arena_alloc(&k->arena, id.len + 1);
        if (copy != NULL) {
            memcpy(copy, id.data, id.len);
            ids[count++] = copy;
        }
    }
    return count;
}

static void command_prefer(struct kubelet *k, struct weft_str rest, int64_t size)
{
    const char *available[IDS_MAX], *required[IDS_MAX];
    struct weft_str word = {"", 0};
    struct weft_kubelet_preferred question = {.size = (int32_t)size};
    (void)weft_str_word(&rest, &word);
    question.available =
        (struct weft_kubelet_ids){.ids = available, .count = split_ids(k, word, available)};
    word = (struct weft_str){"", 0};
    (void)weft_str_word(&rest, &word);
    question.required =
        (struct weft_kubelet_ids){.ids = required, .count = split_ids(k, word, required)};
    prefer(k, &question, on_preferred);
}

static void on_called(void *data, const struct weft_rpc_result *result)
{
    struct kubelet *k = data;
    say("called code=%d bytes=%zu message=\"%s\"", result->code, result->len, result->message);
    next(k);
}

static void command_call(struct kubelet *k, struct weft_str method)
{
    /* gRPC keeps the method's text until the call ends; so does the arena */
    char *path = weft_pb_arena_alloc(&k->arena, method.len + 1);
    weft_auto(weft_buf_done) struct weft_buf nothing;
    weft_buf_init(&nothing, 1);
    if (path != NULL) {
        memcpy(path, method.data, method.len);
        call(k, path, &nothing, on_called);
    }
}

/* Commands that are done at once. false: not one of them. */
static bool run_simple(struct kubelet *k, struct weft_str word, struct weft_str rest)
{
    if (weft_str_eq(word, "end-stream")) {
        weft_rpc_request_free(weft_steal(&k->stream));
        k->listed = false;
    } else if (weft_str_eq(word, "hang")) {
        k->hang = weft_str_eq(weft_str_trim(rest), "on");
    } else if (weft_str_eq(word, "quit")) {
        end(k);
    } else if (weft_str_eq(word, "restart")) {
        restart(k);
    } else {
        return false;
    }
    say("done %.*s", WEFT_STR_ARG(word));
    return true;
}

static void run_command(struct kubelet *k, struct weft_str line)
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
        ask(k, number);
    } else if (weft_str_eq(word, "wait") && numbered) {
        k->wait_healthy = number;
    } else if (weft_str_eq(word, "prefer") && numbered) {
        command_prefer(k, rest, number);
    } else if (weft_str_eq(word, "allocate")) {
        const char *ids[IDS_MAX];
        allocate(k, ids, split_ids(k, argument, ids));
    } else if (weft_str_eq(word, "call")) {
        command_call(k, argument);
    } else {
        say("error text=\"unknown command %.*s\"", WEFT_STR_ARG(word));
        k->failed = true;
    }
}

/* May the next command run? */
static bool is_free(struct kubelet *k)
{
    if (k->wait_healthy >= 0 && k->listed && healthy_count(k) == (size_t)k->wait_healthy) {
        say("waited healthy=%" PRId64, k->wait_healthy);
        k->wait_healthy = -1;
    }
    const struct weft_str text = {weft_buf_text(&k->commands), k->commands.len};
    return k->wait_healthy < 0 && k->request == NULL && k->registering == NULL && !k->restarting &&
           (k->listed || !weft_str_starts(text, "ask"));
}

static void run_commands(struct kubelet *k)
{
    while (is_free(k)) {
        struct weft_str rest = {weft_buf_text(&k->commands), k->commands.len}, line;
        const char *newline = rest.len > 0 ? memchr(rest.data, '\n', rest.len) : NULL;
        if (newline == NULL) {
            if (k->input_ended) {
                end(k);
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
    struct kubelet *k = data;
    if (k->restarting) {
        k->restarting = false;
        (void)serve(k);
    }
    run_commands(k);
}

static void on_limit(void *data)
{
    struct kubelet *k = data;
    say("error text=\"timeout\"");
    k->failed = true;
    end(k);
}

static void on_input(void *data, unsigned events)
{
    (void)events;
    struct kubelet *k = data;
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
    end(data);
}

static int read_arguments(struct kubelet *k, int argc, char **argv)
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

static int run(struct kubelet *k)
{
    (void)snprintf(k->socket, sizeof(k->socket), "%s/%s", k->dir, WEFT_KUBELET_SOCKET);
    weft_auto(weft_signal_free) struct weft_signal *term = NULL;
    int rc = weft_rpc_new(k->loop, &k->rpc, NULL);
    rc = rc == 0 ? weft_signal_new(k->loop, SIGTERM, on_signal, k, &term, NULL) : rc;
    rc = rc == 0 ? serve(k) : rc;
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
    weft_rpc_free(k->rpc);
    for (size_t i = 0; i < k->device_count; i++) {
        weft_free(k->devices[i].id);
    }
    return rc < 0 || k->failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    static struct kubelet k = {.wait_healthy = -1};
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
