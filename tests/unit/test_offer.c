/* SPDX-License-Identifier: Apache-2.0 */
/* What a container gets, by strategy and vendor, from the request's bytes to the answer's. Expected
 * texts are what NVIDIA's, AMD's and Intel's plugins answer (their documentation and sources),
 * written by hand. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/offer.h"
#include "pkg/base/buf.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/pb/arena.h"
#include "tests/unit/unit.h"

enum {
    ALL = WEFT_RESPOND_ENVVAR | WEFT_RESPOND_VOLUME_MOUNTS | WEFT_RESPOND_CDI_ANNOTATIONS |
          WEFT_RESPOND_CDI_CRI
};

static void set_vendor(struct weft_machine *m, const char *vendor)
{
    weft_free(m->vendor);
    m->vendor = weft_strdup(vendor);
}

/* GPU-a is index 0, GPU-b 1; MIG-c and MIG-d are instances 1 and 3 of GPU 2; GPU-e is unhealthy. */
static struct weft_machine *nvidia(void)
{
    static const struct {
        const char *id, *nodes[4];
        int index, parent, partition;
    } rows[] = {
        {"GPU-b", {"/dev/nvidia1"}, 1, -1, 0},
        {"GPU-a", {"/dev/nvidia0"}, 0, -1, 0},
        {"MIG-c", {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap12"}, 2, 2, 1},
        {"MIG-d", {"/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap30"}, 2, 2, 3},
        {"GPU-e", {"/dev/nvidia3"}, 3, -1, 0},
    };
    struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("test", WEFT_ARRAY_LEN(rows), 0, &m, NULL), 0);
    set_vendor(m, "nvidia");
    for (size_t i = 0; i < WEFT_ARRAY_LEN(rows); i++) {
        struct weft_device *d = &m->devices[i];
        (void)snprintf(d->id, sizeof(d->id), "%s", rows[i].id);
        d->index = rows[i].index;
        d->parent = rows[i].parent;
        d->partition = rows[i].partition;
        for (size_t n = 0; rows[i].nodes[n] != NULL; n++) {
            CHECK_INT(weft_machine_add_node(d, rows[i].nodes[n]), 0);
        }
    }
    m->devices[4].healthy = false;
    (void)snprintf(m->devices[4].health_reason, sizeof(m->devices[4].health_reason), "XID 79");
    CHECK_INT(weft_machine_add_common_node(m, "/dev/nvidiactl"), 0);
    return m;
}

static struct weft_machine *one(const char *vendor, const char *id, const char *node)
{
    struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("test", 1, 0, &m, NULL), 0);
    set_vendor(m, vendor);
    (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), "%s", id);
    CHECK_INT(weft_machine_add_node(&m->devices[0], node), 0);
    return m;
}

static void put_pairs(struct weft_buf *buf, char mark, const struct weft_kubelet_pair *pairs,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)weft_buf_printf(buf, "%c%s=%s ", mark, pairs[i].key, pairs[i].value);
    }
}

/* "$ENV=value", "@annotation=value", "node[<host path]:permissions", "+mount<host path",
 * "%CDI name", each with a blank after it. */
static void put_grant(struct weft_buf *buf, const struct weft_kubelet_grant *g)
{
    put_pairs(buf, '$', g->envs, g->env_count);
    for (size_t i = 0; i < g->node_count; i++) {
        const struct weft_kubelet_node *n = &g->nodes[i];
        const bool same = strcmp(n->container_path, n->host_path) == 0;
        (void)weft_buf_printf(buf, "%s%s%s:%s ", n->container_path, same ? "" : "<",
                              same ? "" : n->host_path, n->permissions);
    }
    for (size_t i = 0; i < g->mount_count; i++) {
        (void)weft_buf_printf(buf, "+%s<%s%s ", g->mounts[i].container_path, g->mounts[i].host_path,
                              g->mounts[i].read_only ? ":ro" : "");
    }
    put_pairs(buf, '@', g->annotations, g->annotation_count);
    for (size_t i = 0; i < g->cdi_device_count; i++) {
        (void)weft_buf_printf(buf, "%%%s ", g->cdi_devices[i]);
    }
}

/* ids with commas; the machine is taken over. The error's text where there is one. */
static const char *ask(struct weft_machine *machine, const struct weft_inventory_options *options,
                       const char *ids)
{
    static char text[4096];
    char copy[512];
    const char *list[32];
    size_t count = 0;
    (void)snprintf(copy, sizeof(copy), "%s", ids);
    for (char *p = copy, *rest = NULL; (p = strtok_r(p, ",", &rest)) != NULL; p = NULL) {
        list[count++] = p;
    }
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    weft_auto(weft_buf_done) struct weft_buf request, answer, out;
    weft_buf_init(&request, WEFT_KUBELET_MESSAGE_MAX);
    weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
    weft_buf_init(&out, sizeof(text) - 1);
    const struct weft_kubelet_ids asked = {list, count};
    CHECK_INT(weft_kubelet_peer_encode_allocate(&arena, &(struct weft_kubelet_id_lists){&asked, 1},
                                                &request),
              0);
    weft_auto(weft_inventory_free) struct weft_inventory *inventory = NULL;
    struct weft_error err = {0};
    int rc = weft_inventory_new(machine, options, &inventory, &err);
    if (rc < 0) {
        weft_machine_free(machine);
    } else {
        rc = weft_grant_allocate(inventory, &arena, weft_buf_text(&request), request.len, &answer,
                                 &err);
    }
    struct weft_kubelet_grants grants = {0};
    if (rc == 0 &&
        CHECK_INT(weft_kubelet_peer_decode_grants(&arena, weft_buf_text(&answer), answer.len,
                                                  &grants, NULL),
                  0) &&
        CHECK_INT(grants.count, 1)) {
        put_grant(&out, &grants.containers[0]);
    }
    (void)snprintf(text, sizeof(text), "%s", rc < 0 ? err.message : weft_buf_text(&out));
    return text;
}

static const char *with(const struct weft_respond_settings *settings,
                        const struct weft_extras *extras, const char *ids)
{
    return ask(nvidia(), &(struct weft_inventory_options){.respond = settings, .extras = extras},
               ids);
}

#define KIND "k8s.device-plugin.nvidia.com/gpu="
#define VOLUMES "/var/run/nvidia-container-devices"

static void strategies(void)
{
    static const struct {
        unsigned strategies;
        enum weft_respond_id id;
        bool pass;
        const char *ids, *expected;
    } cases[] = {
        {0, WEFT_RESPOND_UUID, true, "GPU-b,GPU-a",
         "$NVIDIA_VISIBLE_DEVICES=GPU-a,GPU-b /dev/nvidia0:rw /dev/nvidia1:rw /dev/nvidiactl:rw "},
        {WEFT_RESPOND_ENVVAR, WEFT_RESPOND_UUID, false, "GPU-b", "$NVIDIA_VISIBLE_DEVICES=GPU-b "},
        {WEFT_RESPOND_ENVVAR, WEFT_RESPOND_INDEX, false, "MIG-d,GPU-b,MIG-c",
         "$NVIDIA_VISIBLE_DEVICES=1,2:1,2:3 "},
        {WEFT_RESPOND_ENVVAR, WEFT_RESPOND_UUID, true, "MIG-d,MIG-c",
         "$NVIDIA_VISIBLE_DEVICES=MIG-c,MIG-d /dev/nvidia2:rw /dev/nvidia-caps/nvidia-cap12:rw "
         "/dev/nvidia-caps/nvidia-cap30:rw /dev/nvidiactl:rw "},
        {WEFT_RESPOND_VOLUME_MOUNTS, WEFT_RESPOND_UUID, false, "GPU-a,MIG-c",
         "$NVIDIA_VISIBLE_DEVICES=" VOLUMES " +" VOLUMES "/GPU-a</dev/null +" VOLUMES
         "/MIG-c</dev/null "},
        {WEFT_RESPOND_VOLUME_MOUNTS, WEFT_RESPOND_INDEX, true, "GPU-b",
         "$NVIDIA_VISIBLE_DEVICES=" VOLUMES " /dev/nvidia1:rw /dev/nvidiactl:rw +" VOLUMES
         "/1</dev/null "},
        /* with CDI alone the file lets the device in, as in NVIDIA's plugin */
        {WEFT_RESPOND_CDI_CRI, WEFT_RESPOND_UUID, true, "GPU-a,MIG-d",
         "%" KIND "GPU-a %" KIND "MIG-d "},
        {WEFT_RESPOND_CDI_CRI, WEFT_RESPOND_INDEX, true, "MIG-d", "%" KIND "2:3 "},
        {WEFT_RESPOND_ENVVAR | WEFT_RESPOND_CDI_CRI, WEFT_RESPOND_UUID, true, "GPU-a",
         "$NVIDIA_VISIBLE_DEVICES=GPU-a /dev/nvidia0:rw /dev/nvidiactl:rw %" KIND "GPU-a "},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(cases); i++) {
        const struct weft_respond_settings settings = {.strategies = cases[i].strategies,
                                                       .id_strategy = cases[i].id,
                                                       .pass_device_specs = cases[i].pass};
        CHECK_STR(with(&settings, NULL, cases[i].ids), cases[i].expected);
    }
}

/* A key of at most 63 bytes after the prefix, another for other devices, the same for the same. */
static void annotations(void)
{
    struct weft_respond_settings settings = {.strategies = WEFT_RESPOND_CDI_ANNOTATIONS};
    char first[256], again[256], other[256];
    (void)snprintf(first, sizeof(first), "%s", with(&settings, NULL, "GPU-b,GPU-a"));
    (void)snprintf(again, sizeof(again), "%s", with(&settings, NULL, "GPU-a,GPU-b"));
    (void)snprintf(other, sizeof(other), "%s", with(&settings, NULL, "GPU-a"));
    CHECK_STR(first, again);
    CHECK(strncmp(first, "@cdi.k8s.io/weft-device-plugin_", 31) == 0);
    const char *equals = strchr(first, '=');
    CHECK(equals != NULL && equals - strchr(first, '/') - 1 <= 63);
    CHECK_STR(equals != NULL ? equals : "", "=" KIND "GPU-a," KIND "GPU-b ");
    CHECK(equals != NULL && strncmp(first, other, (size_t)(equals - first)) != 0);
    settings.annotation_prefix = weft_strdup("example.com/");
    CHECK_CONTAINS(with(&settings, NULL, "GPU-a"), "@example.com/weft-device-plugin_");
    weft_respond_settings_done(&settings);
}

static void roots(void)
{
    struct weft_respond_settings settings = {.pass_device_specs = true,
                                             .driver_root = weft_strdup("/run/nvidia/driver")};
    CHECK_STR(with(&settings, NULL, "GPU-a"),
              "$NVIDIA_VISIBLE_DEVICES=GPU-a /dev/nvidia0</run/nvidia/driver/dev/nvidia0:rw "
              "/dev/nvidiactl</run/nvidia/driver/dev/nvidiactl:rw ");
    settings.dev_root = weft_strdup("/");
    CHECK_STR(with(&settings, NULL, "GPU-a"),
              "$NVIDIA_VISIBLE_DEVICES=GPU-a /dev/nvidia0:rw /dev/nvidiactl:rw ");
    weft_respond_settings_done(&settings);
}

/* All that a container of a multi-node job may get at once. */
static void features(void)
{
    struct weft_extras extras = {
        .node_count = 2,
        .imex_channels = {0, 7},
        .imex_channel_count = 2,
        .cdi = {[WEFT_EXTRA_IMEX] = true, [WEFT_EXTRA_GDRCOPY] = true, [WEFT_EXTRA_MOFED] = true}};
    extras.nodes[0] = weft_strdup("/dev/nvidia-caps-imex-channels/channel0");
    extras.nodes[1] = weft_strdup("/dev/gdrdrv");
    struct weft_respond_settings settings = {.strategies = WEFT_RESPOND_ENVVAR,
                                             .pass_device_specs = true,
                                             .gdrcopy = true,
                                             .gds = true,
                                             .mofed = true};
    CHECK_STR(with(&settings, &extras, "GPU-a"),
              "$NVIDIA_GDRCOPY=enabled $NVIDIA_GDS=enabled $NVIDIA_MOFED=enabled "
              "$NVIDIA_IMEX_CHANNELS=0,7 $NVIDIA_VISIBLE_DEVICES=GPU-a /dev/nvidia0:rw "
              "/dev/nvidiactl:rw /dev/nvidia-caps-imex-channels/channel0:rw /dev/gdrdrv:rw ");
    settings = (struct weft_respond_settings){.strategies = WEFT_RESPOND_VOLUME_MOUNTS};
    CHECK_STR(with(&settings, &extras, "GPU-a"),
              "$NVIDIA_VISIBLE_DEVICES=" VOLUMES " +" VOLUMES "/GPU-a</dev/null +" VOLUMES
              "/imex/0</dev/null +" VOLUMES "/imex/7</dev/null ");
    settings = (struct weft_respond_settings){.strategies = WEFT_RESPOND_CDI_CRI, .gds = true};
    CHECK_STR(with(&settings, &extras, "GPU-a"),
              "$NVIDIA_GDS=enabled %" KIND "GPU-a %k8s.device-plugin.nvidia.com/imex-channel=0 "
              "%k8s.device-plugin.nvidia.com/imex-channel=7 "
              "%k8s.device-plugin.nvidia.com/gdrcopy=all %k8s.device-plugin.nvidia.com/mofed=all ");
    weft_extras_done(&extras);
    CHECK_INT(extras.node_count, 0);
}

/* No runtime reads a list of AMD's and Intel's: the nodes are passed in any case. */
static void other_vendors(void)
{
    const struct weft_respond_settings all = {.strategies = ALL};
    const struct weft_inventory_options every = {.respond = &all};
    struct weft_machine *m = one("amd", "0000:1b:00.0", "/dev/dri/renderD128");
    CHECK_INT(weft_machine_add_common_node(m, "/dev/kfd"), 0);
    CHECK_STR(ask(m, NULL, "0000:1b:00.0"), "/dev/dri/renderD128:rw /dev/kfd:rw ");
    m = one("amd", "0000:1b:00.0", "/dev/dri/renderD128");
    const char *text = ask(m, &every, "0000:1b:00.0");
    CHECK_CONTAINS(text, "/dev/dri/renderD128:rw @cdi.k8s.io/weft-device-plugin_");
    CHECK_CONTAINS(text, "%k8s.device-plugin.amd.com/gpu=0000:1b:00.0 ");
    m = one("intel", "card1-0", "/dev/dri/card1");
    CHECK_INT(weft_machine_add_mount(&m->devices[0], "/dev/dri/by-path/pci-0000:1a:00.0-card"), 0);
    CHECK_STR(ask(m, NULL, "card1-0"), "/dev/dri/card1:rw +/dev/dri/by-path/pci-0000:1a:00.0-card<"
                                       "/dev/dri/by-path/pci-0000:1a:00.0-card:ro ");
    const struct weft_respond_settings cri = {.strategies = WEFT_RESPOND_CDI_CRI};
    m = one("intel", "card1-0", "/dev/dri/card1");
    CHECK_STR(ask(m, &(struct weft_inventory_options){.respond = &cri}, "card1-0"),
              "%k8s.device-plugin.intel.com/gpu=card1-0 ");
}

static void moore_threads(void)
{
    CHECK_STR(ask(one("mthreads", "GPU-x", "/dev/mtgpu.0"), NULL, "GPU-x"),
              "$MTHREADS_VISIBLE_DEVICES=GPU-x /dev/mtgpu.0:rw ");
    /* an address is no name that the runtime knows */
    struct weft_machine *m = one("mthreads", "0000:1b:00.0", "/dev/mtgpu.3");
    m->devices[0].index = 3;
    CHECK_STR(ask(m, NULL, "0000:1b:00.0"), "$MTHREADS_VISIBLE_DEVICES=3 /dev/mtgpu.3:rw ");
}

static void replicas_are_one_device(void)
{
    const struct weft_inventory_options shared = {.replicas = 4};
    CHECK_STR(ask(nvidia(), &shared, "GPU-a::3,GPU-a::1"),
              "$NVIDIA_VISIBLE_DEVICES=GPU-a /dev/nvidia0:rw /dev/nvidiactl:rw ");
    CHECK_STR(ask(nvidia(), &shared, "GPU-a::4"), "there is no device GPU-a::4");
    CHECK_STR(ask(nvidia(), &shared, "GPU-a"), "there is no device GPU-a");
}

static void errors_name_the_id(void)
{
    CHECK_STR(with(NULL, NULL, "GPU-a,GPU-x"), "there is no device GPU-x");
    CHECK_STR(with(NULL, NULL, "GPU-e"), "device GPU-e is unhealthy: XID 79");
    CHECK_STR(with(NULL, NULL, ""), "a container asks for no device");
    const struct weft_respond_settings cri = {.strategies = WEFT_RESPOND_CDI_CRI};
    const struct weft_inventory_options options = {.respond = &cri};
    CHECK_CONTAINS(ask(one("nvidia", "MIG-GPU-x/1/0", "/dev/nvidia0"), &options, "MIG-GPU-x/1/0"),
                   "CDI cannot name the device MIG-GPU-x/1/0");
}

/* Each allocation fails in turn: an error, never an answer that lacks something. */
static void without_memory(void)
{
    const struct weft_respond_settings all = {.strategies = ALL, .pass_device_specs = true};
    char whole[2048];
    (void)snprintf(whole, sizeof(whole), "%s", with(&all, NULL, "GPU-a,MIG-c"));
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    static const char request[] = "\x0a\x0e\x0a\x05GPU-a\x0a\x05MIG-c";
    int rc = -1;
    for (uint64_t n = 1; rc < 0 && n < 1000; n++) {
        struct weft_machine *machine = nvidia();
        struct weft_inventory *inventory = NULL;
        struct weft_error err = {0};
        weft_auto(weft_buf_done) struct weft_buf answer;
        weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
        weft_mem_fail_after(n);
        rc = weft_inventory_new(machine, &(struct weft_inventory_options){.respond = &all},
                                &inventory, &err);
        const bool made = rc == 0;
        rc = made ? weft_grant_allocate(inventory, &arena, request, sizeof(request) - 1, &answer,
                                        &err)
                  : rc;
        (void)weft_mem_fail_after(0);
        /* protobuf-c does not tell a lack of memory from bad bytes */
        CHECK(rc == 0 || rc == -ENOMEM || (made && rc == -EINVAL));
        CHECK(rc == 0 || err.message[0] != '\0');
        struct weft_kubelet_grants grants = {0};
        if (rc == 0 && CHECK_INT(weft_kubelet_peer_decode_grants(&arena, weft_buf_text(&answer),
                                                                 answer.len, &grants, NULL),
                                 0)) {
            weft_auto(weft_buf_done) struct weft_buf out;
            weft_buf_init(&out, sizeof(whole));
            put_grant(&out, &grants.containers[0]);
            CHECK_STR(weft_buf_text(&out), whole);
        }
        if (!made) {
            weft_machine_free(machine);
        }
        weft_inventory_free(inventory);
        weft_pb_arena_done(&arena);
        weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    }
    CHECK_INT(rc, 0);
}

/* ---- any bytes ---- */

enum { DEVICES = 4, SICK = 3, RUNS = 20000 };

/* Ids "0::0" to "3::1"; device 3 is unhealthy. */
static struct weft_inventory *numbered(void)
{
    static const struct weft_respond_settings settings = {.strategies = ALL,
                                                          .pass_device_specs = true};
    struct weft_machine *m = NULL;
    struct weft_inventory *inventory = NULL;
    CHECK_INT(weft_machine_new("test", DEVICES, 0, &m, NULL), 0);
    for (int i = 0; i < DEVICES; i++) {
        char node[24];
        (void)snprintf(m->devices[i].id, sizeof(m->devices[i].id), "%d", i);
        (void)snprintf(node, sizeof(node), "/dev/%d", i);
        CHECK_INT(weft_machine_add_node(&m->devices[i], node), 0);
    }
    m->devices[SICK].healthy = false;
    const struct weft_inventory_options options = {.replicas = 2, .respond = &settings};
    CHECK_INT(weft_inventory_new(m, &options, &inventory, NULL), 0);
    return inventory;
}

/* What is granted are the devices whose ids the request has, each once, and none else. */
static bool grant_holds(const struct weft_kubelet_grant *g, const struct weft_kubelet_ids *ids)
{
    bool asked[DEVICES] = {false};
    size_t count = 0;
    for (size_t i = 0; i < ids->count; i++) {
        const int device = ids->ids[i][0] - '0';
        if (device < 0 || device >= SICK || ids->ids[i][1] != ':') {
            return false;
        }
        count += asked[device] ? 0 : 1;
        asked[device] = true;
    }
    bool holds = count > 0 && g->node_count == count && g->cdi_device_count == count &&
                 g->mount_count == count && g->env_count == 1 && g->annotation_count == 1;
    for (size_t i = 0; holds && i < count; i++) {
        const char *path = g->nodes[i].container_path, *cdi = g->cdi_devices[i];
        const char digit = path[strlen("/dev/")];
        holds = asked[digit - '0'] && cdi[strlen(cdi) - 1] == digit;
    }
    return holds;
}

/* Requests of a few ids with some bytes changed: refused with a reason, or granted rightly. */
static void any_bytes(void)
{
    static const char seed[] = "\x0a\x0c\x0a\x04"
                               "1::0\x0a\x04"
                               "2::1\x0a\x06\x0a\x04"
                               "0::1";
    weft_auto(weft_inventory_free) struct weft_inventory *inventory = numbered();
    uint64_t random = 7;
    int granted = 0, refused = 0, wrong = 0;
    for (int run = 0; run < RUNS; run++) {
        char bytes[sizeof(seed) - 1];
        memcpy(bytes, seed, sizeof(bytes));
        const size_t len = sizeof(bytes) - weft_random_below(&random, 2) *
                                               weft_random_below(&random, sizeof(bytes));
        for (uint64_t changes = weft_random_below(&random, 4); changes > 0; changes--) {
            static const char likely[] = "0123:\x0a\x04\x06\x0c\x00";
            bytes[weft_random_below(&random, sizeof(bytes))] =
                likely[weft_random_below(&random, sizeof(likely))];
        }
        weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
        weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
        weft_auto(weft_buf_done) struct weft_buf answer;
        weft_buf_init(&answer, WEFT_KUBELET_MESSAGE_MAX);
        struct weft_error err = {0};
        if (weft_grant_allocate(inventory, &arena, bytes, len, &answer, &err) < 0) {
            refused++;
            wrong += err.message[0] == '\0';
            continue;
        }
        struct weft_kubelet_id_lists asked = {0};
        struct weft_kubelet_grants grants = {0};
        bool holds = weft_kubelet_decode_allocate(&arena, bytes, len, &asked, NULL) == 0 &&
                     weft_kubelet_peer_decode_grants(&arena, weft_buf_text(&answer), answer.len,
                                                     &grants, NULL) == 0 &&
                     grants.count == asked.count && grants.count > 0;
        for (size_t i = 0; holds && i < grants.count; i++) {
            holds = grant_holds(&grants.containers[i], &asked.containers[i]);
        }
        granted++;
        wrong += holds ? 0 : 1;
    }
    CHECK_INT(wrong, 0);
    CHECK(granted > RUNS / 10 && refused > RUNS / 10);
}

static void cdi_names(void)
{
    static const char *const good[] = {"a",         "0",           "0:1", "0000:1b:00.0",
                                       "GPU-a_b.c", "amdgpu_xcp_7"};
    static const char *const bad[] = {"", "-a", "a-", "a/b", "a b", "a=b", "a,b", "\xc3\xa9"};
    for (size_t i = 0; i < WEFT_ARRAY_LEN(good); i++) {
        CHECK(weft_offer_cdi_name_valid(good[i]));
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(bad); i++) {
        CHECK(!weft_offer_cdi_name_valid(bad[i]));
    }
}

WEFT_SUITE(offer, {"strategies", strategies}, {"annotations", annotations}, {"roots", roots},
           {"features", features}, {"other vendors", other_vendors},
           {"Moore Threads", moore_threads}, {"replicas are one device", replicas_are_one_device},
           {"errors name the id", errors_name_the_id}, {"without memory", without_memory},
           {"any bytes", any_bytes}, {"CDI names", cdi_names})
