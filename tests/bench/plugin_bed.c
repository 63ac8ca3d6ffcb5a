/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/plugin_bed.h"

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
#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/loop/loop.h"
#include "pkg/pb/arena.h"
#include "pkg/rpc/rpc.h"

#define LIMIT_NS (20 * WEFT_NS_PER_S)

extern char **environ;

int64_t bed_now(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

static pid_t running; /* the plugin, or 0 */

void bed_fail(const char *what)
{
    (void)fprintf(stderr, "bench: %s\n", what);
    if (running > 0) {
        (void)kill(running, SIGKILL);
    }
    _exit(1);
}

static void wait_for(struct bed *b, const bool *flag, const char *what)
{
    if (!weft_loop_run_until(b->loop, flag, LIMIT_NS)) {
        bed_fail(what);
    }
}

/* ---- the kubelet's part ---- */

static void on_register(void *data, struct weft_rpc_call *call, const void *bytes, size_t len)
{
    struct bed *b = data;
    b->register_ns = bed_now() - b->started_ns;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_registration r = {0};
    if (weft_kubelet_peer_decode_registration(&arena, bytes, len, &r, NULL) < 0) {
        bed_fail("bad registration");
    }
    (void)snprintf(b->endpoint, sizeof(b->endpoint), "%s/%s", b->dir, r.endpoint);
    weft_rpc_call_reply(call, NULL, 0);
    b->registered = true;
}

static void forget_ids(struct bed *b)
{
    for (size_t i = 0; i < b->id_count; i++) {
        weft_free(b->ids[i]);
    }
    b->id_count = 0;
}

static void on_list(void *data, const void *bytes, size_t len)
{
    struct bed *b = data;
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    struct weft_kubelet_devices list = {0};
    if (weft_kubelet_peer_decode_devices(&arena, bytes, len, &list, NULL) < 0 ||
        list.count > BED_IDS_MAX) {
        bed_fail("bad device list");
    }
    forget_ids(b);
    for (; b->id_count < list.count; b->id_count++) {
        b->ids[b->id_count] = weft_strdup(list.devices[b->id_count].id);
        if (b->ids[b->id_count] == NULL) {
            bed_fail("no memory");
        }
    }
    b->listed = true;
}

static void on_answer(void *data, const struct weft_rpc_result *result)
{
    struct bed *b = data;
    b->code = result->code;
    b->answered = true;
}

int64_t bed_call(struct bed *b, const char *method, const struct weft_buf *bytes)
{
    struct weft_rpc_request *request = NULL;
    b->answered = false;
    const struct weft_rpc_request_options options = {.method = method,
                                                     .bytes = weft_buf_text(bytes),
                                                     .len = bytes->len,
                                                     .done = on_answer,
                                                     .data = b};
    const int64_t begin = bed_now();
    if (weft_rpc_request_new(b->plugin, &options, &request, NULL) < 0) {
        bed_fail("no memory");
    }
    wait_for(b, &b->answered, "no answer");
    const int64_t ns = bed_now() - begin;
    weft_rpc_request_free(request);
    if (b->code != WEFT_RPC_OK) {
        bed_fail("a call is refused");
    }
    return ns;
}

/* ---- the plugin ---- */

void bed_start(struct bed *b)
{
    char program[512];
    const char *build = getenv("WEFT_BUILD");
    (void)snprintf(program, sizeof(program), "%s/bin/weft-device-plugin",
                   build != NULL ? build : "build");
    char name[] = "weft-device-plugin", machine[] = "--machine", file[256] = "";
    char plugin_dir[] = "--plugin-dir", level[] = "--log-level", error[] = "error";
    char host_root[] = "--host-root", vendor[] = "--vendor", nvidia[] = "nvidia";
    (void)snprintf(file, sizeof(file), "%s", b->machine != NULL ? b->machine : "");
    char *const recorded[] = {name, machine, file, plugin_dir, b->dir, level, error, NULL};
    char *const asked[] = {name,       host_root, b->host, vendor, nvidia,
                           plugin_dir, b->dir,    level,   error,  NULL};
    b->registered = false;
    b->started_ns = bed_now();
    if (posix_spawn(&b->pid, program, NULL, NULL, b->machine != NULL ? recorded : asked, environ) !=
        0) {
        bed_fail("the plugin does not start");
    }
    running = b->pid;
    wait_for(b, &b->registered, "the plugin does not register");
}

void bed_stop(struct bed *b)
{
    int status = 0;
    (void)kill(b->pid, SIGTERM);
    running = 0;
    if (waitpid(b->pid, &status, 0) != b->pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bed_fail("the plugin does not end well");
    }
}

void bed_watch(struct bed *b)
{
    bed_start(b);
    const struct weft_rpc_request_options options = {
        .method = WEFT_KUBELET_LIST_AND_WATCH, .message = on_list, .done = on_answer, .data = b};
    if (weft_rpc_channel_new(b->rpc, b->endpoint, 0, &b->plugin, NULL) < 0 ||
        weft_rpc_request_new(b->plugin, &options, &b->stream, NULL) < 0) {
        bed_fail("no stream");
    }
    wait_for(b, &b->listed, "no device list");
}

/* ---- the node ---- */

static void make_node(const struct bed *b, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/dev/%s", b->host, name);
    if (weft_file_replace(path, "", 0, 0600, NULL) < 0) {
        bed_fail("no device node");
    }
}

/* The host of a node with GPUs, as far as the driver's library needs it: device nodes. The sysfs of
 * the mock's GPUs is missing, so a real node's look-ups there come on top. */
static void make_host(struct bed *b)
{
    char path[128];
    (void)snprintf(b->host, sizeof(b->host), "/tmp/weft-bench-XXXXXX");
    (void)snprintf(path, sizeof(path), "%s/dev", mkdtemp(b->host) != NULL ? b->host : "");
    if (mkdir(path, 0700) < 0) {
        bed_fail("no host");
    }
    make_node(b, "nvidiactl");
    make_node(b, "nvidia-uvm");
    for (size_t i = 0; i < b->gpus; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "nvidia%zu", i);
        make_node(b, name);
    }
    char count[128];
    (void)snprintf(count, sizeof(count), "%s/calls", b->host);
    const char *build = getenv("WEFT_BUILD");
    (void)snprintf(path, sizeof(path), "%s/fakes", build != NULL ? build : "build");
    if (setenv("LD_LIBRARY_PATH", path, 1) < 0 || setenv("WEFT_MOCK_NVML", b->mock, 1) < 0 ||
        setenv("WEFT_MOCK_NVML_CALLS", count, 1) < 0) {
        bed_fail("no environment");
    }
}

uint64_t bed_vendor_calls(const struct bed *b)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/calls", b->host);
    weft_autofree char *bytes = NULL;
    size_t len = 0;
    uint64_t calls = 0;
    if (weft_file_read(path, sizeof(calls), &bytes, &len, NULL) < 0 || len != sizeof(calls)) {
        bed_fail("the mock library counts nothing");
    }
    memcpy(&calls, bytes, sizeof(calls));
    return calls;
}

void bed_up(struct bed *b)
{
    static const struct weft_rpc_method methods[] = {{WEFT_KUBELET_REGISTER, on_register}};
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    if (b->machine == NULL) {
        make_host(b);
    }
    (void)snprintf(b->dir, sizeof(b->dir), "/tmp/weft-bench-XXXXXX");
    if (mkdtemp(b->dir) == NULL || weft_loop_new(&b->loop, NULL) < 0 ||
        weft_rpc_new(b->loop, &b->rpc, NULL) < 0) {
        bed_fail("no loop");
    }
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", b->dir, WEFT_KUBELET_SOCKET);
    const struct weft_rpc_server_options options = {
        .path = path, .methods = methods, .method_count = 1, .data = b};
    if (weft_rpc_server_new(b->rpc, &options, &b->server, NULL) < 0) {
        bed_fail("no kubelet.sock");
    }
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void bed_down(struct bed *b)
{
    weft_rpc_request_free(b->stream);
    weft_rpc_channel_free(b->plugin);
    weft_rpc_server_free(b->server);
    (void)weft_rpc_free(b->rpc);
    weft_loop_free(b->loop);
    forget_ids(b);
    (void)nftw(b->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    if (b->machine == NULL) {
        (void)nftw(b->host, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}
