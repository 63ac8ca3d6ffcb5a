/* SPDX-License-Identifier: Apache-2.0 */
/* weft-controller as a program: what its last line and its exit status say when the API server
 * cannot be used, or the command line. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "tests/unit/proc.h"
#include "tests/unit/unit.h"

#define DENIAL "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

enum { ARGS_MAX = 8 };

struct bench {
    char dir[200], config[256], kubeconfig[256];
    int listener, port;
};

static void put(const char *path, const char *text)
{
    CHECK_INT(weft_file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void up(struct bench *b)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(any);
    (void)snprintf(b->dir, sizeof(b->dir), "%s", weft_test_dir());
    (void)snprintf(b->config, sizeof(b->config), "%s/c.yaml", b->dir);
    (void)snprintf(b->kubeconfig, sizeof(b->kubeconfig), "%s/controller-kc", b->dir);
    put(b->config, "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"
                   "sources:\n- labels: {preset: aws}\n");
    b->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(b->listener, (struct sockaddr *)&any, sizeof(any)), 0);
    CHECK_INT(listen(b->listener, 8), 0);
    CHECK_INT(getsockname(b->listener, (struct sockaddr *)&any, &len), 0);
    b->port = ntohs(any.sin_port);
}

static void put_kubeconfig(const struct bench *b, const char *scheme, const char *more)
{
    char text[1024];
    (void)snprintf(text, sizeof(text),
                   "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                   "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                   "clusters: [{name: k, cluster: {server: \"%s://127.0.0.1:%d\"%s}}]\n"
                   "users: [{name: u, user: {token: abc}}]\n",
                   scheme, b->port, more);
    put(b->kubeconfig, text);
}

static bool begin(struct proc *p, const char *const *args)
{
    char program[512];
    const char *argv[ARGS_MAX + 2] = {program};
    (void)snprintf(program, sizeof(program), "%s", proc_path("bin/weft-controller"));
    for (size_t i = 0; i < ARGS_MAX && args[i] != NULL; i++) {
        argv[i + 1] = args[i];
    }
    return proc_start(p, argv);
}

#define BEGIN(p, ...) begin(p, (const char *const[]){__VA_ARGS__, NULL})

/* Answers one request: who asks is not known. True if it was for the Lease, or none came. */
static bool deny(const struct bench *b)
{
    struct pollfd wait = {.fd = b->listener, .events = POLLIN};
    char request[4096] = "";
    const bool came = poll(&wait, 1, 5000) == 1;
    CHECK(came);
    if (came) {
        const int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK(recv(fd, request, sizeof(request) - 1, 0) > 0);
        CHECK_INT(send(fd, DENIAL, strlen(DENIAL), MSG_NOSIGNAL), (int)strlen(DENIAL));
        (void)close(fd);
    }
    return !came || strstr(request, "/leases/") != NULL;
}

static const char *last_line(struct proc *p)
{
    (void)proc_says(p, "no such text", 5000); /* to the end of its output */
    char *end = p->text != NULL ? p->text + strlen(p->text) : NULL;
    if (end == NULL || end == p->text) {
        return "";
    }
    end[-1] = '\0';
    const char *line = strrchr(p->text, '\n');
    return line != NULL ? line + 1 : p->text;
}

static void a_denial_ends_once_and_is_told(void)
{
    struct bench b;
    struct proc p;
    up(&b);
    put_kubeconfig(&b, "http", "");
    if (BEGIN(&p, "--config", b.config, "--kubeconfig", b.kubeconfig, "--once")) {
        (void)deny(&b);
        const char *line = last_line(&p);
        CHECK_CONTAINS(line, "the API server cannot be used");
        CHECK_CONTAINS(line, "leases/weft-controller: 401");
        CHECK_INT(proc_end(&p, 0, 3000), 1);
    }
    (void)close(b.listener);
}

/* Tried every two seconds for as long as the right is missing: one line, not 40,000 a day. */
static void a_denied_lease_is_told_once(void)
{
    struct bench b;
    struct proc p;
    up(&b);
    put_kubeconfig(&b, "http", "");
    if (BEGIN(&p, "--config", b.config, "--kubeconfig", b.kubeconfig)) {
        for (int tries = 0; tries < 3;) {
            tries += deny(&b);
        }
        CHECK_INT(kill(p.pid, SIGTERM), 0);
        (void)last_line(&p);
        const char *first = p.text != NULL ? strstr(p.text, "event=lease ") : NULL;
        CHECK(first != NULL && strstr(first + 1, "event=lease ") == NULL);
        CHECK_INT(proc_end(&p, 0, 3000), 0);
    }
    (void)close(b.listener);
}

static void a_ca_file_without_certificate_is_named(void)
{
    static const char *const modes[] = {"--once", "--dry-run"};
    struct bench b;
    char ca[256], more[400];
    up(&b);
    (void)snprintf(ca, sizeof(ca), "%s/ca.pem", b.dir);
    put(ca, "no certificate\n");
    (void)snprintf(more, sizeof(more), ", certificate-authority: \"%s\"", ca);
    put_kubeconfig(&b, "https", more);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(modes); i++) {
        struct proc p;
        if (BEGIN(&p, "--config", b.config, "--kubeconfig", b.kubeconfig, modes[i])) {
            const char *line = last_line(&p);
            CHECK_CONTAINS(line, "the API server cannot be used");
            CHECK_CONTAINS(line, "certificate-authority");
            CHECK_CONTAINS(line, "/ca.pem)");
            CHECK_INT(proc_end(&p, 0, 3000), 1);
        }
    }
    (void)close(b.listener);
}

/* One request to a page of the controller's; ret holds the whole answer. */
static void get(uint64_t port, const char *path, char *ret, size_t size)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = 5};
    char request[256];
    size_t len = 0;
    weft_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)snprintf(request, sizeof(request),
                   "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path);
    CHECK_INT(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    CHECK_INT(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    for (ssize_t n = 1; n > 0 && len + 1 < size; len += n > 0 ? (size_t)n : 0) {
        n = recv(fd, ret + len, size - len - 1, 0);
    }
    ret[len] = '\0';
}

/* An API server that takes connections and never answers: alive, not ready, and no leader. */
static void pages_tell_a_controller_that_waits(void)
{
    struct bench b;
    struct proc p;
    up(&b);
    put_kubeconfig(&b, "http", "");
    if (BEGIN(&p, "--config", b.config, "--kubeconfig", b.kubeconfig, "--listen", "127.0.0.1:0")) {
        static char page[1 << 17];
        const char *line = proc_expect(&p, "event=listening");
        const char *at = line != NULL ? strstr(line, " port=") : NULL;
        uint64_t port = 0;
        CHECK(at != NULL &&
              weft_parse_u64(weft_str_trim(weft_str(at + 6)), UINT16_MAX, &port) == 0);
        get(port, "/livez", page, sizeof(page));
        CHECK_CONTAINS(page, "HTTP/1.1 200 ");
        get(port, "/readyz", page, sizeof(page));
        CHECK_CONTAINS(page, "HTTP/1.1 503 ");
        CHECK_CONTAINS(page, "waiting for the list of Nodes");
        get(port, "/metrics", page, sizeof(page));
        CHECK_CONTAINS(page, "\nweft_leader 0\n");
        CHECK_CONTAINS(page, "\nweft_synced 0\n");
        CHECK_CONTAINS(page, "\nweft_passes_total 0\n");
        CHECK_CONTAINS(page, "\nweft_build_info{version=\"" WEFT_VERSION "\"} 1\n");
    }
    CHECK_INT(proc_end(&p, SIGTERM, 10000), 0);
    (void)close(b.listener);
}

static void wrong_use_is_no_failure(void)
{
    struct bench b;
    struct proc p;
    up(&b);
    if (BEGIN(&p, "--config", b.config, "--output", b.dir, "--against", b.dir)) {
        (void)last_line(&p);
        CHECK_CONTAINS(p.text, "would be overwritten");
        CHECK_INT(proc_end(&p, 0, 3000), 2);
    }
    if (BEGIN(&p, "--config", "/nonexistent", "--once")) {
        CHECK_CONTAINS(last_line(&p), "/nonexistent: No such file");
        CHECK_INT(proc_end(&p, 0, 3000), 1);
    }
    (void)close(b.listener);
}

/* A configuration over switches l0 and l1 of which l0 has the first so many of n0…n7. */
static void put_switches(const struct bench *b, int first)
{
    char text[512], conf[256];
    (void)snprintf(conf, sizeof(conf), "%s/topology.conf", b->dir);
    (void)snprintf(text, sizeof(text),
                   "SwitchName=l0 Nodes=n[0-%d]\nSwitchName=l1 Nodes=n[%d-7]\n"
                   "SwitchName=s0 Switches=l[0-1]\n",
                   first - 1, first);
    put(conf, text);
    (void)snprintf(text, sizeof(text),
                   "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"
                   "tiers: [leaf, spine]\nsources:\n- slurm: {conf: \"%s\"}\n",
                   conf);
    put(b->config, text);
}

#define POD(name, gang, node)                                                                      \
    "{\"kind\": \"Pod\", \"metadata\": {\"namespace\": \"ml\", \"name\": \"" name                  \
    "\", \"annotations\": {\"scheduling.k8s.io/group-name\": \"" gang                              \
    "\"}}, \"spec\": {\"nodeName\": \"" node "\"}, \"status\": {\"phase\": \"Running\"}}"

/* n3 goes from l0 to l1: gang a (n2, n3, n3) was whole in l0; b stays in l1. */
static void gangs_under_a_change_are_named(void)
{
    struct bench b;
    struct proc p;
    char pods[256], before[256], after[256];
    up(&b);
    (void)snprintf(pods, sizeof(pods), "%s/pods.json", b.dir);
    (void)snprintf(before, sizeof(before), "%s/gangs-before", b.dir);
    (void)snprintf(after, sizeof(after), "%s/gangs-after", b.dir);
    put_switches(&b, 4);
    if (BEGIN(&p, "--config", b.config, "--output", before)) {
        CHECK_INT(proc_end(&p, 0, 5000), 0);
    }
    put_switches(&b, 3);
    put(pods, "{\"items\": [\n" POD("a-0", "a", "n2") ",\n" POD("a-1", "a", "n3") ",\n" POD(
                  "a-2", "a", "n3") ",\n" POD("b-0", "b", "n4") "\n], \"kind\": \"List\"}\n");
    if (BEGIN(&p, "--config", b.config, "--output", after, "--against", before, "--pods", pods)) {
        const char *line = last_line(&p);
        CHECK_CONTAINS(line, "affected: weft-leaf-l0-");
        CHECK_CONTAINS(line, " (tier 1): gang ml/a: 2 of its 3 pods there, on 1 of 2 nodes, will "
                             "be elsewhere: n3 to weft-leaf-l1-");
        CHECK_CONTAINS(line, "; no HyperNode of this tier will hold the whole gang");
        CHECK(strstr(p.text, "ml/b") == NULL && strstr(p.text, "weft-spine") == NULL);
        CHECK_INT(proc_end(&p, 0, 5000), 0);
    }
    put(pods, "{\"items\": [\n" POD("a-0", "a", "n2") "]}");
    if (BEGIN(&p, "--config", b.config, "--output", after, "--against", before, "--pods", pods)) {
        CHECK_CONTAINS(last_line(&p), "affected: none; no HyperNode loses a node with one of the "
                                      "1 pod of gangs in ");
        CHECK_INT(proc_end(&p, 0, 5000), 0);
    }
    put(pods, "{\"items\": [\n{\"metadata\": {}, \"spec\": {\"nodeName\": 1}}]}");
    if (BEGIN(&p, "--config", b.config, "--output", after, "--against", before, "--pods", pods)) {
        CHECK_CONTAINS(last_line(&p), "pods.json:2: spec.nodeName: is an integer (1)");
        CHECK_INT(proc_end(&p, 0, 5000), 1);
    }
    (void)close(b.listener);
}

/* AWS: the second page is not there. */
#define PAGE_1                                                                                     \
    "{\"Instances\": [{\"InstanceId\": \"i-1\", \"NetworkNodes\": [\"a\", \"b\", \"c\"]}]"
#define PAGE_2                                                                                     \
    "{\"Instances\": [{\"InstanceId\": \"i-2\", \"NetworkNodes\": [\"a\", \"b\", \"d\"]}]}"

static int write_folder(const struct bench *b, const char *folder, const char *option,
                        const char *value, const char *line)
{
    struct proc p;
    char dir[256];
    (void)snprintf(dir, sizeof(dir), "%s/%s", b->dir, folder);
    if (BEGIN(&p, "--config", b->config, "--output", dir, option, value)) {
        CHECK_CONTAINS(last_line(&p), line);
    }
    return proc_end(&p, 0, 3000);
}

static void a_part_takes_nothing_out_of_a_folder(void)
{
    struct bench b;
    char file[256], text[512], old[256], path[300];
    up(&b);
    (void)snprintf(file, sizeof(file), "%s/part.json", b.dir);
    (void)snprintf(old, sizeof(old), "%s/part-old", b.dir);
    (void)snprintf(text, sizeof(text),
                   "apiVersion: weft.dev/v1alpha1\nkind: ControllerConfig\n"
                   "tiers: [leaf, spine, core]\nsources:\n- awsApiFile: {file: %s}\n",
                   file);
    put(b.config, text);
    put(file, PAGE_1 "}" PAGE_2);
    CHECK_INT(write_folder(&b, "part-old", NULL, NULL, "4 HyperNodes of 2 Nodes"), 0);
    put(file, PAGE_1 ", \"NextToken\": \"t\"}");
    CHECK_INT(write_folder(&b, "part-old", NULL, NULL, "takes nothing away"), 1);
    CHECK_INT(write_folder(&b, "part-new", "--against", old, "takes nothing away"), 1);
    (void)snprintf(path, sizeof(path), "%s/part-new", b.dir);
    CHECK(access(path, F_OK) < 0);
    CHECK_INT(write_folder(&b, "part-first", NULL, NULL, "3 HyperNodes of 1 Node"), 0);
    (void)close(b.listener);
}

WEFT_SUITE(controller_run, {"a denial ends --once and is told", a_denial_ends_once_and_is_told},
           {"a denied Lease is told once", a_denied_lease_is_told_once},
           {"a CA file without certificate is named", a_ca_file_without_certificate_is_named},
           {"pages tell a controller that waits", pages_tell_a_controller_that_waits},
           {"gangs under a change are named", gangs_under_a_change_are_named},
           {"wrong use is no failure", wrong_use_is_no_failure},
           {"a part takes nothing out of a folder", a_part_takes_nothing_out_of_a_folder})
