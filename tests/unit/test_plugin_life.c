/* SPDX-License-Identifier: Apache-2.0 */
/* More than one plugin on a node, and the other way of registering, against the kubelet stand-in:
 * a second weft waits and takes over, another vendor's plugin is named and left alone, the plugin
 * watcher finds us. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "tests/unit/http_get.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define PAIRS "tests/fixtures/machine/pairs8.json"

enum { PLUGINS = 3 };

struct node {
    char dir[256], registry[300];
    struct proc kubelet, plugins[PLUGINS];
    uint16_t ports[PLUGINS];
    struct weft_buf page;
};

static bool start_kubelet(struct node *n)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("fakes/fake_kubelet"));
    const char *const argv[] = {program, "--dir", n->dir, "--timeout", "60", NULL};
    return proc_start(&n->kubelet, argv) && proc_expect(&n->kubelet, "serving") != NULL;
}

static bool up(struct node *n)
{
    static int number;
    *n = (struct node){.kubelet.pid = -1};
    weft_buf_init(&n->page, 1U << 20);
    for (size_t i = 0; i < PLUGINS; i++) {
        n->plugins[i].pid = -1;
    }
    (void)snprintf(n->dir, sizeof(n->dir), "%s/life%d", weft_test_dir(), number++);
    (void)snprintf(n->registry, sizeof(n->registry), "%s/registry", n->dir);
    CHECK_INT(mkdir(n->dir, 0700), 0);
    CHECK_INT(mkdir(n->registry, 0700), 0);
    return start_kubelet(n);
}

/* Starts plugin number i and waits for its page's port. */
static bool start_plugin(struct node *n, size_t i, const char *way)
{
    char program[512];
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-device-plugin"));
    const char *const argv[] = {program, "--machine",      PAIRS,         "--plugin-dir",
                                n->dir,  "--listen",       "127.0.0.1:0", "--registration",
                                way,     "--registry-dir", n->registry,   NULL};
    struct proc *plugin = &n->plugins[i];
    const char *line = proc_start(plugin, argv) ? proc_expect(plugin, "event=listening") : NULL;
    const char *port = line != NULL ? strstr(line, " port=") : NULL;
    uint64_t value = 0;
    const bool good =
        port != NULL && weft_parse_u64(weft_str_trim(weft_str(port + 6)), UINT16_MAX, &value) == 0;
    n->ports[i] = (uint16_t)value;
    CHECK(good);
    return good;
}

static void down(struct node *n)
{
    for (size_t i = 0; i < PLUGINS; i++) {
        if (n->plugins[i].pid > 0) {
            CHECK_INT(proc_end(&n->plugins[i], SIGTERM, 5000), 0);
        }
    }
    (void)proc_end(&n->kubelet, SIGTERM, 5000);
    weft_buf_done(&n->page);
}

static const char *get(struct node *n, size_t i, const char *path)
{
    return http_get((uint16_t)n->ports[i], path, &n->page);
}

static int64_t now_ms(void)
{
    return weft_clock_monotonic(weft_clock_system()) / WEFT_NS_PER_MS;
}

/* ---- a second weft ---- */

static bool active_and_standby(struct node *n, const char *way)
{
    if (!up(n) || !start_plugin(n, 0, way)) {
        return false;
    }
    proc_expect(&n->kubelet, "list devices=8 healthy=8");
    if (!start_plugin(n, 1, way)) {
        return false;
    }
    const char *line = proc_expect(&n->plugins[1], "event=standby resource=nvidia.com/gpu");
    char holder[32];
    (void)snprintf(holder, sizeof(holder), "pid=%ld ", (long)n->plugins[0].pid);
    CHECK_CONTAINS(line != NULL ? line : "", holder);
    return line != NULL;
}

static void a_second_one_waits_and_is_ready(void)
{
    struct node n;
    if (active_and_standby(&n, "classic")) {
        CHECK_CONTAINS(get(&n, 0, "/readyz"), "role=active nvidia.com/gpu\n");
        CHECK_CONTAINS(get(&n, 1, "/readyz"), "HTTP/1.1 200 ");
        CHECK_CONTAINS(weft_buf_text(&n.page), "role=standby nvidia.com/gpu\n");
        CHECK_CONTAINS(get(&n, 1, "/metrics"),
                       "\nweft_plugin_standby{resource=\"nvidia.com/gpu\"} 1\n");
        CHECK(!proc_says(&n.kubelet, "register", 700)); /* not a word to the kubelet */
    }
    down(&n);
}

/* The old one ends; the new one is registered within a second, and no later loss of a stream, which
 * would leave the node without devices for a moment. */
static int64_t takes_over(int signum, int code)
{
    struct node n;
    int64_t took = INT64_MAX;
    if (active_and_standby(&n, "classic")) {
        const int64_t start = now_ms();
        CHECK_INT(proc_end(&n.plugins[0], signum, 5000), code);
        proc_expect(&n.kubelet, "register version=v1beta1");
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
        took = now_ms() - start;
        CHECK_CONTAINS(get(&n, 1, "/readyz"), "role=active nvidia.com/gpu\n");
        CHECK(!proc_says(&n.kubelet, "stream-ended", 300));
        proc_send(&n.kubelet, "ask 2");
        proc_expect(&n.kubelet, "allocated containers=1");
    }
    down(&n);
    return took;
}

/* A busy machine may be late once, not three times. */
static void takes_over_in_time(int signum, int code)
{
    int64_t best = INT64_MAX;
    for (int i = 0; i < 3 && best > 1000; i++) {
        const int64_t took = takes_over(signum, code);
        best = took < best ? took : best;
    }
    CHECK(best <= 1000);
}

static void it_takes_over_when_the_first_is_told_to_end(void)
{
    takes_over_in_time(SIGTERM, 0);
}

static void it_takes_over_when_the_first_is_killed(void)
{
    takes_over_in_time(SIGKILL, 1000 + SIGKILL);
}

static void of_two_that_wait_one_takes_over(void)
{
    struct node n;
    if (active_and_standby(&n, "classic") && start_plugin(&n, 2, "classic")) {
        proc_expect(&n.plugins[2], "event=standby");
        CHECK_INT(proc_end(&n.plugins[0], SIGKILL, 5000), 1000 + SIGKILL);
        proc_expect(&n.kubelet, "register version=v1beta1");
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
        CHECK(!proc_says(&n.kubelet, "register", 700));
        const bool second = strstr(get(&n, 1, "/readyz"), "role=active") != NULL;
        CHECK_CONTAINS(get(&n, second ? 2 : 1, "/readyz"), "role=standby");
    }
    down(&n);
}

static void empty(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        (void)unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* Everything in the folder goes, the lock file too: the first stays the one that registers. */
static void a_wiped_folder_changes_no_roles(void)
{
    struct node n;
    if (active_and_standby(&n, "classic")) {
        for (int i = 0; i < 5; i++) {
            (void)proc_end(&n.kubelet, SIGKILL, 5000); /* or it saw its input's end before */
            empty(n.dir);
            (void)start_kubelet(&n);
            proc_expect(&n.kubelet, "list devices=8 healthy=8");
            CHECK(!proc_says(&n.plugins[1], "takes-over", 600));
        }
        CHECK_CONTAINS(get(&n, 0, "/readyz"), "role=active nvidia.com/gpu\n");
        CHECK_CONTAINS(get(&n, 1, "/readyz"), "role=standby nvidia.com/gpu\n");
    }
    down(&n);
}

/* One that sleeps while its claim goes to another lets it be when it wakes. */
static void a_sleeper_steps_down(void)
{
    struct node n;
    if (active_and_standby(&n, "classic")) {
        CHECK_INT(kill(n.plugins[0].pid, SIGSTOP), 0);
        empty(n.dir);
        (void)proc_end(&n.kubelet, SIGKILL, 5000);
        (void)start_kubelet(&n);
        proc_expect(&n.plugins[1], "event=takes-over");
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
        CHECK_INT(kill(n.plugins[0].pid, SIGCONT), 0);
        proc_expect(&n.plugins[0], "level=warn event=standby");
        CHECK_CONTAINS(get(&n, 0, "/readyz"), "role=standby nvidia.com/gpu\n");
        CHECK_CONTAINS(get(&n, 1, "/readyz"), "role=active nvidia.com/gpu\n");
    }
    down(&n);
}

/* ---- another vendor's ---- */

static int listen_at(const char *dir, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(listen(fd, 64), 0);
    return fd;
}

static void one_that_was_there_first_stays_alone(void)
{
    struct node n;
    if (up(&n)) {
        const int rival = listen_at(n.dir, "nvidia-gpu.sock");
        if (start_plugin(&n, 0, "classic")) {
            proc_expect(&n.plugins[0], "event=another-plugin resource=nvidia.com/gpu "
                                       "socket=nvidia-gpu.sock");
            CHECK(!proc_says(&n.kubelet, "register", 1500));
            CHECK_CONTAINS(get(&n, 0, "/readyz"), "HTTP/1.1 503 ");
            CHECK_CONTAINS(weft_buf_text(&n.page), "nvidia.com/gpu: another plugin serves it "
                                                   "(nvidia-gpu.sock)");
            CHECK_CONTAINS(get(&n, 0, "/metrics"),
                           "\nweft_plugin_rival{resource=\"nvidia.com/gpu\",socket=\"nvidia-gpu."
                           "sock\"} 1\n");
        }
        CHECK_INT(close(rival), 0); /* it dies, its socket's file stays */
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
        proc_expect(&n.plugins[0], "event=other-plugin-gone");
        CHECK(strstr(get(&n, 0, "/metrics"), "\nweft_plugin_rival{") == NULL);
    }
    down(&n);
}

static void one_that_comes_later_is_named(void)
{
    struct node n;
    if (up(&n) && start_plugin(&n, 0, "classic")) {
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
        const int rival = listen_at(n.dir, "nvidia-gpu.sock");
        CHECK(rival >= 0);
        proc_expect(&n.plugins[0], "event=another-plugin resource=nvidia.com/gpu "
                                   "socket=nvidia-gpu.sock");
        CHECK_CONTAINS(get(&n, 0, "/metrics"), "\nweft_plugin_rival{");
        CHECK(!proc_says(&n.kubelet, "stream-ended", 500)); /* that would end the other's too */
        proc_send(&n.kubelet, "end-stream");                /* the kubelet drops both */
        CHECK(!proc_says(&n.kubelet, "register", 1500));
        CHECK_INT(close(rival), 0);
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
    }
    down(&n);
}

static void one_without_a_known_name_shows_by_its_doings(void)
{
    struct node n;
    if (up(&n) && start_plugin(&n, 0, "classic")) {
        weft_autoclose int rival = listen_at(n.dir, "something.sock");
        CHECK(rival >= 0);
        proc_expect(&n.kubelet, "list devices=8");
        proc_send(&n.kubelet, "end-stream");
        proc_expect(&n.kubelet, "register");
        proc_expect(&n.kubelet, "list devices=8");
        CHECK(strstr(get(&n, 0, "/metrics"), "\nweft_plugin_rival{") == NULL);
        proc_send(&n.kubelet, "end-stream");
        const char *line = proc_expect(&n.plugins[0], "event=another-plugin");
        CHECK_CONTAINS(line != NULL ? line : "", "other_sockets=something.sock");
        const char *page = get(&n, 0, "/metrics");
        CHECK_CONTAINS(page,
                       "\nweft_plugin_rival{resource=\"nvidia.com/gpu\",socket=\"unknown\"} 1\n");
        CHECK_CONTAINS(page, "\nweft_plugin_stepped_back_total 1\n");
    }
    down(&n);
}

/* ---- the plugin watcher ---- */

/* Has the stand-in look at the socket that the plugin says it offers. */
static bool find(struct node *n, size_t i)
{
    char command[512];
    const char *line = proc_expect(&n->plugins[i], "event=offered");
    const char *socket = line != NULL ? strstr(line, "socket=") : NULL;
    if (socket == NULL) {
        return false;
    }
    (void)snprintf(command, sizeof(command), "find %.*s", (int)strcspn(socket + 7, " \n"),
                   socket + 7);
    proc_send(&n->kubelet, command);
    return true;
}

static void the_plugin_watcher_finds_it(void)
{
    struct node n;
    if (up(&n) && start_plugin(&n, 0, "watcher")) {
        CHECK_CONTAINS(get(&n, 0, "/readyz"), "HTTP/1.1 503 ");
        if (find(&n, 0)) {
            proc_expect(&n.kubelet, "info type=DevicePlugin name=nvidia.com/gpu endpoint=\"\" "
                                    "version=v1beta1");
            proc_expect(&n.kubelet, "notified code=0");
            proc_send(&n.kubelet, "ask 2");
            proc_expect(&n.kubelet, "allocated containers=1");
            CHECK_CONTAINS(get(&n, 0, "/readyz"), "role=active nvidia.com/gpu\n");
            CHECK(!proc_says(&n.kubelet, "register", 100));
        }
        /* the stream ends, the socket stays: never asked again, so there must be a new one */
        proc_send(&n.kubelet, "end-stream");
        proc_expect(&n.plugins[0], "event=stream-lost");
        CHECK(find(&n, 0));
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
    }
    down(&n);
}

static void a_socket_that_nobody_finds_is_offered_anew(void)
{
    struct node n;
    if (up(&n) && start_plugin(&n, 0, "watcher")) {
        proc_expect(&n.plugins[0], "event=offered");
        proc_expect(&n.plugins[0], "event=not-found-yet");
        proc_send(&n.kubelet, "refuse on");
        if (find(&n, 0)) {
            proc_expect(&n.plugins[0], "event=not-registered resource=nvidia.com/gpu "
                                       "reason=\"the stand-in refuses it\"");
        }
        empty(n.registry); /* a wipe: seen at once */
        proc_send(&n.kubelet, "refuse off");
        CHECK(find(&n, 0));
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
    }
    down(&n);
}

static void a_watched_one_has_a_standby_too(void)
{
    struct node n;
    if (up(&n) && start_plugin(&n, 0, "classic") && start_plugin(&n, 1, "watcher")) {
        proc_expect(&n.plugins[1], "event=standby");
        CHECK_INT(proc_end(&n.plugins[0], SIGTERM, 5000), 0);
        CHECK(find(&n, 1));
        proc_expect(&n.kubelet, "notified code=0");
    }
    down(&n);
}

/* It came later and goes again: the kubelet asks nobody now, though it holds our stream. */
static void one_that_came_and_went_is_replaced(void)
{
    struct node n;
    if (up(&n) && start_plugin(&n, 0, "classic")) {
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
        char path[600];
        (void)snprintf(path, sizeof(path), "%s/nvidia-gpu.sock", n.dir);
        weft_autoclose int rival = listen_at(n.dir, "nvidia-gpu.sock");
        CHECK(rival >= 0);
        proc_expect(&n.plugins[0], "event=another-plugin");
        CHECK_INT(unlink(path), 0);
        proc_expect(&n.plugins[0], "event=other-plugin-gone");
        proc_expect(&n.kubelet, "-2.sock resource=nvidia.com/gpu");
        proc_expect(&n.kubelet, "list devices=8 healthy=8");
    }
    down(&n);
}

WEFT_SUITE(
    plugin_life, {"a second one waits and is ready", a_second_one_waits_and_is_ready},
    {"it takes over when the first is told to end", it_takes_over_when_the_first_is_told_to_end},
    {"it takes over when the first is killed", it_takes_over_when_the_first_is_killed},
    {"of two that wait one takes over", of_two_that_wait_one_takes_over},
    {"a wiped folder changes no roles", a_wiped_folder_changes_no_roles},
    {"a sleeper steps down", a_sleeper_steps_down},
    {"one that was there first stays alone", one_that_was_there_first_stays_alone},
    {"one that comes later is named", one_that_comes_later_is_named},
    {"one that came and went is replaced", one_that_came_and_went_is_replaced},
    {"one without a known name shows by its doings", one_without_a_known_name_shows_by_its_doings},
    {"the plugin watcher finds it", the_plugin_watcher_finds_it},
    {"a socket that nobody finds is offered anew", a_socket_that_nobody_finds_is_offered_anew},
    {"a watched one has a standby too", a_watched_one_has_a_standby_too})
