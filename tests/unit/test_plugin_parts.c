/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's parts by themselves: options from flags, environment and file; the folder's
 * questions; answers for a machine of unknown NUMA nodes and of another vendor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "deviceplugin/folder.h"
#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/options.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"
#include "tests/unit/unit.h"

/* ---- options ---- */

static char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static char *some_env(const char *name)
{
    static char resource[] = "env.com/gpu", policy[] = "packed";
    return strcmp(name, "WEFT_RESOURCE") == 0            ? resource
           : strcmp(name, "WEFT_ALLOCATION_POLICY") == 0 ? policy
                                                         : NULL;
}

static int read_options(const char *const *args, char *(*env)(const char *),
                        struct weft_options *ret, struct weft_error *err)
{
    char *argv[12] = {NULL};
    int argc = 1;
    char program[] = "weft-device-plugin";
    argv[0] = program;
    for (; args[argc - 1] != NULL; argc++) {
        argv[argc] = weft_strdup(args[argc - 1]);
    }
    const int rc = weft_options_read(argc, argv, env, ret, err);
    for (int i = 1; i < argc; i++) {
        weft_free(argv[i]);
    }
    return rc;
}

#define READ(env, ret, err, ...)                                                                   \
    read_options((const char *const[]){__VA_ARGS__, NULL}, (env), (ret), (err))

static void flags_win_over_environment_over_file(void)
{
    char file[300];
    (void)snprintf(file, sizeof(file), "%s/options.yaml", weft_test_dir());
    static const char text[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n"
                               "machine: /from/file\nresource: file.com/gpu\npluginDir: /plugins\n"
                               "hostRoot: /host\ndriverRoot: /drv\nvendor: nvidia\n"
                               "ignoredErrors: \"13, 94\"\ndriverTimeout: 2s\nrescan: 1m\n"
                               "allocationPolicy: packed\nlog: {format: json, level: warn}\n";
    CHECK_INT(weft_file_replace(file, text, strlen(text), 0600, NULL), 0);
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(READ(no_env, &o, &err, "--config", file), 0);
    CHECK_STR(o.machine, "/from/file");
    CHECK_STR(o.pools.resource, "file.com/gpu");
    CHECK_STR(o.host_root, "/host");
    CHECK_STR(o.driver_root, "/drv");
    CHECK_STR(o.vendor, "nvidia");
    CHECK_STR(o.ignored_errors, "13, 94");
    CHECK_INT(o.driver_timeout_ns, 2 * WEFT_NS_PER_S);
    CHECK_INT(o.rescan_ns, 60 * WEFT_NS_PER_S);
    CHECK_STR(o.plugin_dir, "/plugins");
    CHECK_INT(o.policy, WEFT_POLICY_PACKED);
    CHECK_INT(o.log_format, WEFT_LOG_JSON);
    CHECK_INT(o.log_level, WEFT_LOG_WARN);
    weft_options_done(&o);
    CHECK_INT(READ(some_env, &o, &err, "--config", file, "--allocation-policy=performance"), 0);
    CHECK_STR(o.pools.resource, "env.com/gpu");
    CHECK_INT(o.policy, WEFT_POLICY_PERFORMANCE);
    weft_options_done(&o);
    CHECK_INT(READ(no_env, &o, &err, "--machine", "/m"), 0); /* the defaults */
    CHECK(o.pools.resource == NULL && o.host_root == NULL && o.vendor == NULL);
    CHECK_STR(weft_resource_of_vendor(""), "nvidia.com/gpu");
    CHECK_STR(weft_resource_of_vendor("amd"), "amd.com/gpu");
    CHECK_INT(o.driver_timeout_ns, 10 * WEFT_NS_PER_S);
    CHECK_INT(o.rescan_ns, 30 * WEFT_NS_PER_S);
    CHECK_STR(o.plugin_dir, "/var/lib/kubelet/device-plugins");
    CHECK_INT(o.policy, WEFT_POLICY_PERFORMANCE);
}

static void wrong_flags_are_named(void)
{
    struct weft_error err = {0};
    struct weft_options o = {0};
    CHECK_INT(READ(no_env, &o, &err, "--resource", "gpu"), -EINVAL);
    CHECK_CONTAINS(err.message, "--resource: \"gpu\" is not a resource name");
    CHECK_INT(READ(no_env, &o, &err, "--machine"), -EINVAL);
    CHECK_CONTAINS(err.message, "--machine needs a value");
    CHECK_INT(READ(no_env, &o, &err, "--machine="), -EINVAL);
    CHECK_CONTAINS(err.message, "is not a path");
    CHECK_INT(READ(no_env, &o, &err, "--vendor", "acme"), -EINVAL);
    CHECK_CONTAINS(err.message, "--vendor: \"acme\" is not a vendor");
    CHECK_INT(READ(no_env, &o, &err, "--ignored-errors", "13;31"), -EINVAL);
    CHECK_CONTAINS(err.message, "a list of XID numbers");
    CHECK_INT(READ(no_env, &o, &err, "--driver-timeout", "1us"), -EINVAL);
    CHECK_INT(READ(no_env, &o, &err, "--rescan", "0s"), -EINVAL);
    CHECK_CONTAINS(err.message, "--rescan: \"0s\" is not a time from 10ms to 1h");
    CHECK_INT(READ(no_env, &o, &err, "--host-root="), -EINVAL);
    CHECK_INT(READ(no_env, &o, &err, "--config", "/nonexistent.yaml"), -ENOENT);
    CHECK(o.machine == NULL && o.pools.resource == NULL); /* untouched */
}

static int apply(const char *text, struct weft_options *o, struct weft_error *err)
{
    return weft_options_apply_file(text, strlen(text), "f.yaml", o, err);
}

static void a_field_that_would_be_ignored_is_an_error_with_its_line(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    static const char head[] = "apiVersion: weft.dev/v1alpha1\nkind: DevicePluginConfig\n";
    char text[300];
    (void)snprintf(text, sizeof(text), "%slog:\n  colour: red\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:4: log.colour");
    (void)snprintf(text, sizeof(text), "%sallocationPolicy: fast\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:3: allocationPolicy: \"fast\" is not performance or");
    (void)snprintf(text, sizeof(text), "%sresource: [a]\n", head);
    CHECK_INT(apply(text, &o, &err), -EINVAL);
    CHECK_INT(apply("kind: DevicePluginConfig\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "apiVersion");
    CHECK_INT(apply("a: b\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "neither kind: DevicePluginConfig nor");
    CHECK_INT(apply(": : :\n", &o, &err), -EINVAL);
}

static void nvidias_file_is_read_as_far_as_it_means_the_same(void)
{
    struct weft_error err = {0};
    weft_auto(weft_options_done) struct weft_options o = {0};
    CHECK_INT(apply("version: v1\nflags:\n  migStrategy: none\n  failOnInitError: false\n"
                    "  plugin:\n    passDeviceSpecs: true\n    deviceListStrategy: [envvar]\n"
                    "    deviceIDStrategy: uuid\n",
                    &o, &err),
              0);
    CHECK_INT(apply("version: v1\nflags:\n  migStrategy: mixed\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "f.yaml:3: flags.migStrategy: only none is supported");
    CHECK_INT(apply("version: v1\nsharing:\n  timeSlicing: {}\n", &o, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "sharing: this field of NVIDIA's file is not supported");
    CHECK_INT(apply("version: v1\nflags:\n  plugin:\n    deviceListStrategy: [envvar, cdi-cri]\n",
                    &o, &err),
              -EINVAL);
    CHECK_INT(apply("version: v2\n", &o, &err), -EINVAL);
}

static void resource_names_are_the_kubelets(void)
{
    static const char *const good[] = {"nvidia.com/gpu", "a/b", "x.y-z.org/A_b.c-9"};
    static const char *const bad[] = {"gpu",
                                      "/gpu",
                                      "nvidia.com/",
                                      "a b.com/gpu",
                                      "kubernetes.io/gpu",
                                      "x.kubernetes.io/gpu",
                                      "a.com/-gpu",
                                      "a.com/gpu_",
                                      "a.com/b/c",
                                      "",
                                      "A.com/gpu"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(good); i++) {
        CHECK(weft_resource_valid(good[i]));
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        CHECK(!weft_resource_valid(bad[i]));
    }
    char name[100] = "a.com/";
    memset(name + 6, 'x', 63);
    CHECK(weft_resource_valid(name));
    name[69] = 'x';
    CHECK(!weft_resource_valid(name));
}

/* ---- folder ---- */

static int listen_at(const char *path, bool start)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    CHECK_INT(start ? listen(fd, 4) : 0, 0);
    return fd;
}

static void only_dead_sockets_of_ours_are_removed(void)
{
    char dir[200], path[300];
    (void)snprintf(dir, sizeof(dir), "%s/clean", weft_test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    static const struct {
        const char *name;
        bool alive, stays;
    } sockets[] = {{"nvidia.com-gpu-1-1.sock", false, false},
                   {"nvidia.com-gpu-77-12.sock", false, false},
                   {"nvidia.com-gpu-1-2.sock", true, true},         /* somebody serves there */
                   {"nvidia.com-gpu-shared-1-1.sock", false, true}, /* another resource's */
                   {"nvidia-gpu.sock", false, true},                /* another plugin's */
                   {"nvidia.com-gpu-1.sock", false, true},
                   {"kubelet.sock", true, true}};
    int fds[WEFT_ARRAY_LEN(sockets)];
    for (size_t i = 0; i < WEFT_ARRAY_LEN(sockets); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, sockets[i].name);
        fds[i] = listen_at(path, sockets[i].alive);
        CHECK(weft_socket_alive(path) == sockets[i].alive);
    }
    (void)snprintf(path, sizeof(path), "%s/nvidia.com-gpu-5-5.sock", dir); /* no socket at all */
    CHECK_INT(weft_file_replace(path, "x", 1, 0600, NULL), 0);
    CHECK_INT(weft_folder_clean(dir, "nvidia.com-gpu"), 2);
    CHECK_INT(access(path, F_OK), 0);
    for (size_t i = 0; i < WEFT_ARRAY_LEN(sockets); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, sockets[i].name);
        CHECK(weft_file_identify(path).exists == sockets[i].stays);
        (void)close(fds[i]);
    }
    CHECK_INT(weft_folder_clean("/nonexistent", "nvidia.com-gpu"), 0);
}

static void names_are_never_taken_twice(void)
{
    char dir[200], name[WEFT_FOLDER_NAME_MAX], path[600], expected[100];
    (void)snprintf(dir, sizeof(dir), "%s/names", weft_test_dir());
    CHECK_INT(mkdir(dir, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/slug-%ld-2.sock", dir, (long)getpid());
    CHECK_INT(weft_file_replace(path, "x", 1, 0600, NULL), 0);
    unsigned generation = 1;
    CHECK_INT(weft_folder_free_name(dir, "slug", &generation, name, NULL), 0);
    (void)snprintf(expected, sizeof(expected), "slug-%ld-1.sock", (long)getpid());
    CHECK_STR(name, expected);
    CHECK_INT(weft_folder_free_name(dir, "slug", &generation, name, NULL), 0);
    (void)snprintf(expected, sizeof(expected), "slug-%ld-3.sock", (long)getpid()); /* 2 is there */
    CHECK_STR(name, expected);
    CHECK_STR(weft_folder_slug("nvidia.com/gpu", name), "nvidia.com-gpu");
    const struct weft_file_identity a = weft_file_identify(path);
    CHECK(weft_file_same(&a, &a));
    CHECK_INT(unlink(path), 0);
    const struct weft_file_identity gone = weft_file_identify(path);
    CHECK(!gone.exists && !weft_file_same(&a, &gone));
}

/* ---- answers ---- */

struct answers {
    struct weft_loop *loop;
    struct weft_inventory *inventory;
    struct weft_pb_arena arena;
    struct weft_buf buf;
};

static void answers_up(struct answers *a, const char *json)
{
    struct weft_machine *machine = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_loop_new(&a->loop, NULL), 0);
    CHECK_INT(weft_machine_read(json, strlen(json), "test", &machine, &err), 0);
    CHECK_INT(weft_inventory_new(machine, NULL, &a->inventory, NULL), 0);
    /* answers at once, and with the tables once they are built */
    const struct weft_allocator *direct = weft_inventory_allocator(a->inventory);
    CHECK(direct != NULL);
    CHECK_INT(weft_inventory_build(a->inventory, a->loop, NULL), 0);
    CHECK(weft_inventory_allocator(a->inventory) == direct);
    const bool never = false;
    for (int i = 0; i < 1000 && weft_inventory_allocator(a->inventory) == direct; i++) {
        (void)weft_loop_run_until(a->loop, &never, 10 * WEFT_NS_PER_MS);
    }
    CHECK(weft_inventory_allocator(a->inventory) != direct);
    weft_pb_arena_init(&a->arena, WEFT_KUBELET_ARENA_MAX);
    weft_buf_init(&a->buf, WEFT_KUBELET_MESSAGE_MAX);
}

static void answers_down(struct answers *a)
{
    weft_pb_arena_done(&a->arena);
    weft_buf_done(&a->buf);
    weft_inventory_free(a->inventory);
    weft_loop_free(a->loop);
}

/* The devices of an AMD machine: listed out of the vendor's order, nodes of their own, NUMA unknown
 * for one. */
static const char amd[] =
    "{\"weft_machine\": 1, \"vendor\": \"amd\", \"common_nodes\": [\"/dev/kfd\"], \"devices\": ["
    "{\"id\": \"b\", \"index\": 1, \"nodes\": [\"/dev/dri/card1\", \"/dev/dri/renderD129\"]},"
    "{\"id\": \"a\", \"index\": 0, \"numa_node\": 1, \"nodes\": [\"/dev/dri/renderD128\"]}]}";

static void other_vendors_get_nodes_and_no_nvidia_variable(void)
{
    struct answers a = {0};
    answers_up(&a, amd);
    const char *const ids[] = {"b", "a"};
    const struct weft_kubelet_ids list = {ids, 2};
    weft_auto(weft_buf_done) struct weft_buf request;
    weft_buf_init(&request, 1000);
    CHECK_INT(weft_kubelet_peer_encode_allocate(&a.arena, &(struct weft_kubelet_id_lists){&list, 1},
                                                &request),
              0);
    CHECK_INT(weft_grant_allocate(a.inventory, &a.arena, weft_buf_text(&request), request.len,
                                  &a.buf, NULL),
              0);
    struct weft_kubelet_grants grants = {0};
    CHECK_INT(
        weft_kubelet_peer_decode_grants(&a.arena, weft_buf_text(&a.buf), a.buf.len, &grants, NULL),
        0);
    CHECK_INT(grants.containers[0].env_count, 0);
    static const char *const nodes[] = {"/dev/dri/renderD128", "/dev/dri/card1",
                                        "/dev/dri/renderD129", "/dev/kfd"};
    CHECK_INT(grants.containers[0].node_count, WEFT_ARRAY_LEN(nodes));
    for (size_t i = 0; i < WEFT_ARRAY_LEN(nodes) && i < grants.containers[0].node_count; i++) {
        CHECK_STR(grants.containers[0].nodes[i].host_path, nodes[i]);
        CHECK_STR(grants.containers[0].nodes[i].container_path, nodes[i]);
        CHECK_STR(grants.containers[0].nodes[i].permissions, "rw");
    }
    answers_down(&a);
}

static void unknown_numa_is_not_told(void)
{
    struct answers a = {0};
    answers_up(&a, amd);
    CHECK_INT(weft_grant_list(a.inventory, &a.arena, &a.buf), 0);
    struct weft_kubelet_devices list = {0};
    CHECK_INT(
        weft_kubelet_peer_decode_devices(&a.arena, weft_buf_text(&a.buf), a.buf.len, &list, NULL),
        0);
    CHECK_INT(list.count, 2);
    CHECK_STR(list.devices[0].id, "b");
    CHECK_INT(list.devices[0].numa_node, -1);
    CHECK_INT(list.devices[1].numa_node, 1);
    answers_down(&a);
}

/* Whatever is sent and whichever allocation fails, the answer is one a kubelet can read. */
static void preferring_survives_garbage_and_lack_of_memory(void)
{
    struct answers a = {0};
    answers_up(&a, amd);
    const char *const ids[] = {"a", "b", "nobody"};
    const struct weft_kubelet_preferred p = {{ids, 3}, {ids, 1}, 1};
    weft_auto(weft_buf_done) struct weft_buf request;
    weft_buf_init(&request, 1000);
    CHECK_INT(weft_kubelet_peer_encode_preferred(
                  &a.arena, &(struct weft_kubelet_preferred_request){&p, 1}, &request),
              0);
    size_t answered = 0;
    const struct weft_grant_preferring from = {
        .inventory = a.inventory, .policy = WEFT_POLICY_PERFORMANCE, .arena = &a.arena};
    for (uint64_t n = 0; n < 40; n++) {
        weft_pb_arena_done(&a.arena);
        weft_pb_arena_init(&a.arena, WEFT_KUBELET_ARENA_MAX);
        weft_buf_done(&a.buf);
        weft_buf_init(&a.buf, WEFT_KUBELET_MESSAGE_MAX);
        (void)weft_mem_fail_after(n);
        weft_grant_prefer(&from, weft_buf_text(&request), request.len, &a.buf);
        (void)weft_mem_fail_after(0);
        struct weft_kubelet_id_lists answer = {0};
        CHECK_INT(a.buf.status, 0);
        CHECK_INT(weft_kubelet_peer_decode_preferred(&a.arena, weft_buf_text(&a.buf), a.buf.len,
                                                     &answer, NULL),
                  0);
        if (answer.count == 1 && answer.containers[0].count == 1) {
            CHECK_STR(answer.containers[0].ids[0], "a");
            answered++;
        }
    }
    CHECK(answered >= 2 && answered < 40);
    weft_buf_reset(&a.buf);
    weft_grant_prefer(&from, "\xff\xff", 2, &a.buf);
    CHECK_INT(a.buf.len, 0);
    answers_down(&a);
}

static void two_devices_of_one_id_are_refused(void)
{
    struct weft_machine *machine = NULL;
    CHECK_INT(weft_machine_new("twins", 2, 0, &machine, NULL), 0);
    (void)snprintf(machine->devices[0].id, sizeof(machine->devices[0].id), "x");
    (void)snprintf(machine->devices[1].id, sizeof(machine->devices[1].id), "x");
    struct weft_inventory *inventory = NULL;
    struct weft_error err = {0};
    CHECK_INT(weft_inventory_new(machine, NULL, &inventory, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "two devices have the id x");
    weft_machine_free(machine);
}

/* A granted device reaches a container by its node or by its UUID. */
static void what_lets_a_container_in(void)
{
    static const struct {
        const char *id, *node;
        bool possible;
    } rows[] = {
        {"GPU0", NULL, false},
        {"GPU0", "/dev/nvidia0", true},
        {"GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4ddb", NULL, true},
        {"MIG-GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4ddb/1/0", NULL, true},
        {"GPU-b9f245aa-bf72-44af-a9e6-8a70a1ed4dd", NULL, false}, /* a digit short */
        {"GPU-b9f245aag-f72-44af-a9e6-8a70a1ed4ddb", NULL, false},
        {"0000:1b:00.0", NULL, false},
        {"", NULL, false},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
        CHECK_INT(weft_machine_new("m", 1, 0, &machine, NULL), 0);
        struct weft_device *device = &machine->devices[0];
        (void)snprintf(device->id, sizeof(device->id), "%s", rows[i].id);
        if (rows[i].node != NULL) {
            CHECK_INT(weft_machine_add_node(device, rows[i].node), 0);
        }
        CHECK_INT(weft_grant_possible(machine), rows[i].possible);
    }
    weft_auto(weft_machine_free) struct weft_machine *none = NULL;
    CHECK_INT(weft_machine_new("none", 0, 0, &none, NULL), 0);
    CHECK(weft_grant_possible(none));
}

/* DIR/kubelet.sock must fit a unix socket's 107 bytes: 94 are left for DIR. */
static void a_folder_too_long_for_a_socket_is_refused(void)
{
    char dir[128] = "/";
    memset(dir + 1, 'd', 93);
    weft_auto(weft_options_done) struct weft_options o = {0};
    struct weft_error err = {0};
    CHECK_INT(READ(no_env, &o, &err, "--machine", "m", "--plugin-dir", dir), 0);
    dir[94] = 'd';
    weft_auto(weft_options_done) struct weft_options longer = {0};
    CHECK_INT(READ(no_env, &longer, &err, "--machine", "m", "--plugin-dir", dir), -ENAMETOOLONG);
    CHECK_CONTAINS(err.message, "--plugin-dir: 95 bytes are too long");
    CHECK_CONTAINS(err.message, "at most 94");
}

WEFT_SUITE(plugin_parts, {"what lets a container in", what_lets_a_container_in},
           {"a folder too long for a socket is refused", a_folder_too_long_for_a_socket_is_refused},
           {"flags win over environment over file", flags_win_over_environment_over_file},
           {"wrong flags are named", wrong_flags_are_named},
           {"a field that would be ignored is an error with its line",
            a_field_that_would_be_ignored_is_an_error_with_its_line},
           {"nvidia's file is read as far as it means the same",
            nvidias_file_is_read_as_far_as_it_means_the_same},
           {"resource names are the kubelet's", resource_names_are_the_kubelets},
           {"only dead sockets of ours are removed", only_dead_sockets_of_ours_are_removed},
           {"names are never taken twice", names_are_never_taken_twice},
           {"other vendors get nodes and no nvidia variable",
            other_vendors_get_nodes_and_no_nvidia_variable},
           {"unknown numa is not told", unknown_numa_is_not_told},
           {"preferring survives garbage and lack of memory",
            preferring_survives_garbage_and_lack_of_memory},
           {"two devices of one id are refused", two_devices_of_one_id_are_refused})
