/* SPDX-License-Identifier: Apache-2.0 */
/* What the device plugin costs a node, seen from outside: this program is its kubelet. Lines of
 * "name value unit": exec → Register (median of 20 starts), resident memory, threads, voluntary
 * switches a second over WEFT_BENCH_SECONDS (60) with ListAndWatch held, and how long a preferred
 * allocation and an Allocate take over the socket. Twice: "plugin_…" with a recorded machine,
 * "plugin_nvml_…" where it asks the driver (the tests' mock of NVIDIA's library, 8 GPUs; the mock's
 * own memory counts too). */
#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"
#include "pkg/rpc/rpc.h"

enum { STARTS = 20, CALLS = 500, IDS_MAX = 64 };

#define MACHINE "tests/fixtures/machine/hgx-h100-8.json"
#define MOCK_MACHINE "tests/fixtures/nvml/hgx-h100-8.json"
#define LIMIT_NS (20 * WEFT_NS_PER_S)

extern char **environ;

struct bench {
    bool nvml; /* asks the driver */
    struct weft_loop *loop;
    struct weft_rpc *rpc;
    struct weft_rpc_server *server;
    struct weft_rpc_channel *plugin;
    struct weft_rpc_request *stream;
    char dir[64], host[64], endpoint[300];
    pid_t pid;
    int64_t started_ns, register_ns;
    bool registered, listed, answered;
    int code;
    const char *ids[IDS_MAX];
    size_t id_count;
};

static int64_t now_ns(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench_plugin: %s\n", what);
    _exit(1);
}

static void wait_for(struct bench *b, const bool *flag, const char *what)
{
    if (!weft_loop_run_until(b->loop, flag, LIMIT_NS)) {
        fail(what);
    }
}

/* ---- the kubelet's part ---- */

static void on_register(void *data, struct weft_rpc_call *call, const void *bytes, size_t len)
{
    struct bench *b = data;
    b->register_ns = now_ns() - b->started_ns;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_registration r = {0};
    if (weft_kubelet_peer_decode_registration(&arena, bytes, len, &r, NULL) < 0) {
        fail("bad registration");
    }
    (void)snprintf(b->endpoint, sizeof(b->endpoint), "%s/%s", b->dir, r.endpoint);
    weft_rpc_call_reply(call, NULL, 0);
    b->registered = true;
}

static void on_list(void *data, const void *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    struct bench *b = data;
    b->listed = true;
}

static void on_answer(void *data, const struct weft_rpc_result *result)
{
    struct bench *b = data;
    b->code = result->code;
    b->answered = true;
}

static void start_plugin(struct bench *b)
{
    char program[512];
    const char *build = getenv("WEFT_BUILD");
    (void)snprintf(program, sizeof(program), "%s/bin/weft-device-plugin",
                   build != NULL ? build : "build");
    char name[] = "weft-device-plugin", machine[] = "--machine", file[] = MACHINE;
    char plugin_dir[] = "--plugin-dir", level[] = "--log-level", error[] = "error";
    char host_root[] = "--host-root", vendor[] = "--vendor", nvidia[] = "nvidia";
    char *const recorded[] = {name, machine, file, plugin_dir, b->dir, level, error, NULL};
    char *const asked[] = {name,       host_root, b->host, vendor, nvidia,
                           plugin_dir, b->dir,    level,   error,  NULL};
    char *const *argv = b->nvml ? asked : recorded;
    b->registered = false;
    b->started_ns = now_ns();
    if (posix_spawn(&b->pid, program, NULL, NULL, argv, environ) != 0) {
        fail("the plugin does not start");
    }
    wait_for(b, &b->registered, "the plugin does not register");
}

static void stop_plugin(struct bench *b)
{
    int status = 0;
    (void)kill(b->pid, SIGTERM);
    if (waitpid(b->pid, &status, 0) != b->pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail("the plugin does not end well");
    }
}

/* ---- what it costs ---- */

static int64_t field_of(const char *path, const char *key)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    if (weft_file_read(path, 1U << 20, &text, &len, NULL) < 0) {
        return 0;
    }
    struct weft_str rest = {text, len}, line;
    while (weft_str_line(&rest, &line)) {
        struct weft_str word, value;
        int64_t number = 0;
        if (weft_str_word(&line, &word) && weft_str_eq(word, key) && weft_str_word(&line, &value) &&
            weft_parse_i64(value, 0, INT64_MAX, &number) == 0) {
            return number;
        }
    }
    return 0;
}

/* Sums a field of status over the plugin's threads, and counts them. */
static int64_t over_threads(const struct bench *b, const char *key, int *ret_threads)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)b->pid);
    int64_t sum = 0;
    *ret_threads = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        if (e->d_name[0] != '.') {
            weft_autofree char *status = weft_asprintf("%s/%s/status", path, e->d_name);
            sum += status != NULL ? field_of(status, key) : 0;
            (*ret_threads)++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return sum;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void show(const struct bench *b, const char *what, double value, const char *unit)
{
    (void)printf("plugin_%s%s %.*f %s\n", b->nvml ? "nvml_" : "", what,
                 strcmp(unit, "threads") == 0 ? 0
                 : strcmp(unit, "/s") == 0    ? 3
                                              : 2,
                 value, unit);
}

static void time_calls(struct bench *b, const char *name, const char *method,
                       const struct weft_buf *bytes)
{
    static int64_t ns[CALLS];
    for (size_t i = 0; i < CALLS; i++) {
        struct weft_rpc_request *request = NULL;
        b->answered = false;
        const int64_t begin = now_ns();
        if (weft_rpc_request_new(b->plugin,
                                 &(struct weft_rpc_request_options){.method = method,
                                                                    .bytes = weft_buf_text(bytes),
                                                                    .len = bytes->len,
                                                                    .done = on_answer,
                                                                    .data = b},
                                 &request, NULL) < 0) {
            fail("no memory");
        }
        wait_for(b, &b->answered, "no answer");
        ns[i] = now_ns() - begin;
        weft_rpc_request_free(request);
        if (b->code != WEFT_RPC_OK) {
            fail("a call is refused");
        }
    }
    qsort(ns, CALLS, sizeof(ns[0]), compare_times);
    (void)printf("%s_p50 %.0f us\n%s_p99 %.0f us\n", name, (double)ns[CALLS / 2] / 1e3, name,
                 (double)ns[CALLS - CALLS / 100] / 1e3);
}

static void time_questions(struct bench *b)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    weft_auto(weft_buf_done) struct weft_buf question, order;
    weft_buf_init(&question, WEFT_KUBELET_MESSAGE_MAX);
    weft_buf_init(&order, WEFT_KUBELET_MESSAGE_MAX);
    const struct weft_kubelet_preferred container = {
        .available = {.ids = b->ids, .count = b->id_count},
        .size = (int32_t)b->id_count / 2,
    };
    const struct weft_kubelet_ids chosen = {.ids = b->ids, .count = b->id_count / 2};
    if (weft_kubelet_peer_encode_preferred(
            &arena, &(struct weft_kubelet_preferred_request){&container, 1}, &question) < 0 ||
        weft_kubelet_peer_encode_allocate(&arena, &(struct weft_kubelet_id_lists){&chosen, 1},
                                          &order) < 0) {
        fail("no memory");
    }
    time_calls(b, "plugin_preferred", WEFT_KUBELET_PREFERRED, &question);
    time_calls(b, "plugin_allocate", WEFT_KUBELET_ALLOCATE, &order);
}

static void measure_idle(struct bench *b)
{
    uint64_t seconds = 60;
    const char *text = getenv("WEFT_BENCH_SECONDS");
    if (text != NULL && weft_parse_u64(weft_str(text), 3600, &seconds) < 0) {
        fail("WEFT_BENCH_SECONDS is not a number of seconds");
    }
    const bool never = false;
    (void)weft_loop_run_until(b->loop, &never, 2 * WEFT_NS_PER_S); /* after the calls */
    int threads = 0;
    const int64_t before = over_threads(b, "voluntary_ctxt_switches:", &threads);
    (void)weft_loop_run_until(b->loop, &never, (int64_t)seconds * WEFT_NS_PER_S);
    const int64_t after = over_threads(b, "voluntary_ctxt_switches:", &threads);
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)b->pid);
    show(b, "rss", (double)field_of(path, "VmRSS:") / 1024, "MB");
    show(b, "rss_anonymous", (double)field_of(path, "RssAnon:") / 1024, "MB");
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)b->pid);
    show(b, "smaps_rss", (double)field_of(path, "Rss:") / 1024, "MB");
    show(b, "threads", threads, "threads");
    if (seconds > 0) {
        show(b, "switches", (double)(after - before) / (double)seconds, "/s");
    }
}

static void measure_starts(struct bench *b)
{
    int64_t ns[STARTS];
    for (size_t i = 0; i < STARTS; i++) {
        start_plugin(b);
        ns[i] = b->register_ns;
        stop_plugin(b);
    }
    qsort(ns, STARTS, sizeof(ns[0]), compare_times);
    show(b, "exec_register", (double)ns[STARTS / 2] / 1e6, "ms");
    show(b, "exec_register_max", (double)ns[STARTS - 1] / 1e6, "ms");
}

/* ---- life ---- */

/* The host of a node with GPUs, as far as the driver's library needs it: device nodes. The sysfs of
 * the mock's GPUs is missing, so a real node's 8 look-ups there come on top. */
static void make_host(struct bench *b)
{
    char path[128];
    (void)snprintf(b->host, sizeof(b->host), "/tmp/weft-bench-XXXXXX");
    (void)snprintf(path, sizeof(path), "%s/dev", mkdtemp(b->host) != NULL ? b->host : "");
    if (mkdir(path, 0700) < 0) {
        fail("no host");
    }
    static const char *const nodes[] = {"nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1", "nvidia2",
                                        "nvidia3",   "nvidia4",    "nvidia5", "nvidia6", "nvidia7"};
    for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/dev/%s", b->host, nodes[i]);
        if (weft_file_replace(path, "", 0, 0600, NULL) < 0) {
            fail("no device node");
        }
    }
    const char *build = getenv("WEFT_BUILD");
    (void)snprintf(path, sizeof(path), "%s/fakes", build != NULL ? build : "build");
    if (setenv("LD_LIBRARY_PATH", path, 1) < 0 || setenv("WEFT_MOCK_NVML", MOCK_MACHINE, 1) < 0) {
        fail("no environment");
    }
}

static void up(struct bench *b)
{
    static const struct weft_rpc_method methods[] = {{WEFT_KUBELET_REGISTER, on_register}};
    (void)snprintf(b->dir, sizeof(b->dir), "/tmp/weft-bench-XXXXXX");
    if (mkdtemp(b->dir) == NULL || weft_loop_new(&b->loop, NULL) < 0 ||
        weft_rpc_new(b->loop, &b->rpc, NULL) < 0) {
        fail("no loop");
    }
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", b->dir, WEFT_KUBELET_SOCKET);
    const struct weft_rpc_server_options options = {
        .path = path, .methods = methods, .method_count = 1, .data = b};
    if (weft_rpc_server_new(b->rpc, &options, &b->server, NULL) < 0) {
        fail("no kubelet.sock");
    }
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void down(struct bench *b)
{
    weft_rpc_request_free(b->stream);
    weft_rpc_channel_free(b->plugin);
    weft_rpc_server_free(b->server);
    weft_rpc_free(b->rpc);
    weft_loop_free(b->loop);
    (void)nftw(b->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (b->nvml) {
        (void)nftw(b->host, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static void watch(struct bench *b)
{
    start_plugin(b);
    if (weft_rpc_channel_new(b->rpc, b->endpoint, 0, &b->plugin, NULL) < 0 ||
        weft_rpc_request_new(
            b->plugin,
            &(struct weft_rpc_request_options){.method = WEFT_KUBELET_LIST_AND_WATCH,
                                               .message = on_list,
                                               .done = on_answer,
                                               .data = b},
            &b->stream, NULL) < 0) {
        fail("no stream");
    }
    wait_for(b, &b->listed, "no device list");
}

static void measure_recorded(void)
{
    struct bench b = {0};
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    if (weft_machine_load(MACHINE, &machine, &err) < 0) {
        fail(err.message);
    }
    for (size_t i = 0; i < machine->device_count && b.id_count < IDS_MAX; i++) {
        b.ids[b.id_count++] = machine->devices[machine->device_count - 1 - i].id;
    }
    up(&b);
    measure_starts(&b);
    watch(&b);
    time_questions(&b);
    measure_idle(&b);
    stop_plugin(&b);
    down(&b);
}

static void measure_asked(void)
{
    struct bench b = {.nvml = true};
    make_host(&b);
    up(&b);
    measure_starts(&b);
    watch(&b);
    measure_idle(&b);
    stop_plugin(&b);
    down(&b);
}

int main(void)
{
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    measure_recorded();
    measure_asked();
    return 0;
}
