/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's parts by themselves: the folder's questions; answers for a machine of unknown NUMA
 * nodes and of another vendor. */
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
#include "deviceplugin/preference.h"
#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/loop/loop.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"
#include "tests/unit/unit.h"

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

struct told {
    size_t times;
    struct weft_preference last;
};

static void on_preference(void *data, const struct weft_preference *preference)
{
    struct told *told = data;
    told->times++;
    told->last = *preference;
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
    struct told told = {0};
    const struct weft_grant_preferring from = {.inventory = a.inventory,
                                               .policy = WEFT_POLICY_PERFORMANCE,
                                               .arena = &a.arena,
                                               .told = on_preference,
                                               .data = &told};
    for (uint64_t n = 0; n < 40; n++) {
        weft_pb_arena_done(&a.arena);
        weft_pb_arena_init(&a.arena, WEFT_KUBELET_ARENA_MAX);
        weft_buf_done(&a.buf);
        weft_buf_init(&a.buf, WEFT_KUBELET_MESSAGE_MAX);
        (void)weft_mem_fail_after(n);
        weft_grant_prefer(&from, weft_buf_text(&request), request.len, &a.buf);
        (void)weft_mem_fail_after(0);
        CHECK_INT(told.times, n + 1); /* it is counted whatever comes of it */
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
    CHECK(told.last.answered);
    weft_buf_reset(&a.buf);
    told.times = 0;
    weft_grant_prefer(&from, "\xff\xff", 2, &a.buf);
    CHECK_INT(a.buf.len, 0);
    CHECK_INT(told.times, 1);
    CHECK(!told.last.answered);
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

WEFT_SUITE(plugin_parts, {"what lets a container in", what_lets_a_container_in},
           {"only dead sockets of ours are removed", only_dead_sockets_of_ours_are_removed},
           {"names are never taken twice", names_are_never_taken_twice},
           {"other vendors get nodes and no nvidia variable",
            other_vendors_get_nodes_and_no_nvidia_variable},
           {"unknown numa is not told", unknown_numa_is_not_told},
           {"preferring survives garbage and lack of memory",
            preferring_survives_garbage_and_lack_of_memory},
           {"two devices of one id are refused", two_devices_of_one_id_are_refused})
