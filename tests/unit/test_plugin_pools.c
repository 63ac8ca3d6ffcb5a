/* SPDX-License-Identifier: Apache-2.0 */
/* From a machine and settings to resources: NVIDIA's strategies and names, renames, sharing; and
 * the ids of shared devices from the list to the answer. Expected names are those of NVIDIA's and
 * AMD's plugins, written by hand. */
#include <errno.h>
#include <stdio.h>

#include "deviceplugin/grant.h"
#include "deviceplugin/inventory.h"
#include "deviceplugin/pools.h"
#include "deviceplugin/stats.h"
#include "pkg/base/buf.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/machine/machine.h"
#include "pkg/pb/arena.h"
#include "tests/unit/unit.h"

/* One letter a device: W whole "H100", a whole "A100", s partition "1g.10gb", m partition
 * "1g.10gb+me", b partition "3g.40gb". */
static struct weft_machine *machine_of(const char *vendor, const char *devices)
{
    struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("test", strlen(devices), 0, &m, NULL), 0);
    weft_free(m->vendor);
    m->vendor = weft_strdup(vendor);
    for (size_t i = 0; i < m->device_count; i++) {
        struct weft_device *d = &m->devices[i];
        (void)snprintf(d->id, sizeof(d->id), "%c%zu", devices[i], i);
        (void)snprintf(d->model, sizeof(d->model), "NVIDIA %s",
                       devices[i] == 'a' ? "A100" : "H100");
        static const char *const profiles[][2] = {
            {"s", "1g.10gb"}, {"m", "1g.10gb+me"}, {"b", "3g.40gb"}, {"c", "CPX_NPS4"}};
        for (size_t p = 0; p < WEFT_ARRAY_LEN(profiles); p++) {
            if (profiles[p][0][0] == devices[i]) {
                d->parent = 0;
                d->partition = (int)i;
                (void)snprintf(d->profile, sizeof(d->profile), "%s", profiles[p][1]);
            }
        }
    }
    return m;
}

/* "resource=id,id… resource=…", problems as "!". */
static const char *plan(const char *vendor, const char *devices,
                        const struct weft_pool_settings *settings)
{
    static char text[2048];
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of(vendor, devices);
    weft_auto(weft_pools_done) struct weft_pools pools = {0};
    struct weft_error err = {0};
    text[0] = '\0';
    const int rc = weft_pools_plan(m, settings, &pools, &err);
    if (rc < 0) {
        (void)snprintf(text, sizeof(text), "%d %s", rc, err.message);
        return text;
    }
    struct weft_buf buf;
    weft_buf_init(&buf, sizeof(text) - 1);
    for (size_t i = 0; i < pools.count; i++) {
        const struct weft_pool *pool = &pools.items[i];
        (void)weft_buf_printf(&buf, "%s%s=", i > 0 ? " " : "", pool->resource);
        for (size_t k = 0; k < pool->device_count; k++) {
            (void)weft_buf_printf(&buf, "%s%s", k > 0 ? "," : "", m->devices[pool->devices[k]].id);
        }
        if (pool->replicas > 1) {
            (void)weft_buf_printf(&buf, "x%u%s", pool->replicas, pool->fail_above_one ? "!" : "");
        }
    }
    for (size_t i = 0; i < pools.problem_count; i++) {
        (void)weft_buf_printf(&buf, " ! %s", pools.problems[i]);
    }
    (void)snprintf(text, sizeof(text), "%s", weft_buf_text(&buf));
    weft_buf_done(&buf);
    return text;
}

static void strategies(void)
{
    const struct weft_pool_settings by_default = {0};
    const struct weft_pool_settings single = {.partitions = WEFT_PARTITIONS_SINGLE};
    const struct weft_pool_settings mixed = {.partitions = WEFT_PARTITIONS_MIXED};
    CHECK_STR(plan("nvidia", "WW", &by_default), "nvidia.com/gpu=W0,W1");
    CHECK_STR(plan("nvidia", "", &by_default), "nvidia.com/gpu=");
    CHECK_STR(plan("nvidia", "Wss", &by_default),
              "nvidia.com/gpu=W0 ! 2 partitions are not advertised: the strategy is none; single "
              "or mixed advertises them");
    CHECK_STR(plan("nvidia", "ss", &single), "nvidia.com/gpu=s0,s1");
    CHECK_STR(plan("nvidia", "WW", &single), "nvidia.com/gpu=W0,W1");
    CHECK_CONTAINS(plan("nvidia", "ssb", &single), "nvidia.com/gpu= ! strategy single: s0 has");
    CHECK_CONTAINS(plan("nvidia", "Ws", &single), "nvidia.com/gpu= ! strategy single: W0 has");
    /* the attribute after a "+" is written with a dot, as NVIDIA's plugin does */
    CHECK_STR(plan("nvidia", "Wssmb", &mixed),
              "nvidia.com/gpu=W0 nvidia.com/mig-1g.10gb=s1,s2 nvidia.com/mig-1g.10gb.me=m3 "
              "nvidia.com/mig-3g.40gb=b4");
    CHECK_STR(plan("amd", "cc", &by_default), "amd.com/gpu=c0,c1");
    CHECK_STR(plan("amd", "cc", &mixed), "amd.com/gpu= amd.com/cpx_nps4=c0,c1");
}

static void renames(void)
{
    char a100[] = "*A100", any[] = "*", own[] = "example.com/a100", rest[] = "example.com/gpu",
         slice[] = "1g.*", slices[] = "example.com/slice";
    struct weft_pool_rename list[] = {
        {a100, own, false}, {any, rest, false}, {slice, slices, true}};
    const struct weft_pool_settings settings = {
        .partitions = WEFT_PARTITIONS_MIXED, .renames = list, .rename_count = 3};
    CHECK_STR(plan("nvidia", "WaWsb", &settings),
              "nvidia.com/gpu= example.com/a100=a1 example.com/gpu=W0,W2 example.com/slice=s3 "
              "nvidia.com/mig-3g.40gb=b4");
}

static void sharing(void)
{
    char gpu[] = "nvidia.com/gpu", slice[] = "nvidia.com/mig-1g.10gb", own[] = "example.com/part";
    struct weft_pool_share list[] = {{gpu, 4, NULL}, {slice, 2, own}};
    struct weft_pool_settings settings = {
        .partitions = WEFT_PARTITIONS_MIXED, .shares = list, .share_count = 2};
    CHECK_STR(plan("nvidia", "Ws", &settings), "nvidia.com/gpu=W0x4 example.com/part=s1x2");
    settings.rename_by_default = true;
    settings.fail_above_one = true;
    CHECK_STR(plan("nvidia", "Ws", &settings),
              "nvidia.com/gpu.shared=W0x4! example.com/part=s1x2!");
    list[1].rename = gpu;
    settings.rename_by_default = false;
    CHECK_CONTAINS(plan("nvidia", "Ws", &settings), "two resources would be called nvidia.com/gpu");
}

/* One config is for many kinds of node: what no device here has is named, and nothing worse. */
static void sharing_of_what_is_not_there_is_named(void)
{
    char gpu[] = "nvidia.com/gpu", slice[] = "nvidia.com/mig-1g.10gb", typo[] = "nvidia.com/gpus";
    struct weft_pool_share list[] = {{typo, 4, NULL}, {gpu, 4, NULL}, {slice, 2, NULL}};
    const struct weft_pool_settings settings = {
        .partitions = WEFT_PARTITIONS_MIXED, .shares = list, .share_count = 3};
    weft_auto(weft_machine_free) struct weft_machine *whole = machine_of("nvidia", "WW");
    weft_auto(weft_pools_done) struct weft_pools pools = {0};
    CHECK_INT(weft_pools_plan(whole, &settings, &pools, NULL), 0);
    CHECK_INT(pools.unused_count, 2);
    CHECK_INT(pools.unused[0], 0);
    CHECK_INT(pools.unused[1], 2);
    CHECK_INT(pools.problem_count, 0);
    weft_pools_done(&pools);
    /* all devices are split: the resource of whole ones is there, and empty */
    weft_auto(weft_machine_free) struct weft_machine *split = machine_of("nvidia", "s");
    CHECK_INT(weft_pools_plan(split, &settings, &pools, NULL), 0);
    CHECK_INT(pools.unused_count, 2);
    CHECK_INT(pools.unused[0], 0);
    CHECK_INT(pools.unused[1], 1);
}

static void a_profile_must_make_a_name(void)
{
    const struct weft_pool_settings mixed = {.partitions = WEFT_PARTITIONS_MIXED};
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of("nvidia", "s");
    weft_auto(weft_pools_done) struct weft_pools pools = {0};
    struct weft_error err = {0};
    m->devices[0].profile[0] = '\0';
    CHECK_INT(weft_pools_plan(m, &mixed, &pools, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "device s0: no resource name can be made of its profile \"\"");
}

static void short_memory_is_an_error(void)
{
    char gpu[] = "nvidia.com/gpu";
    struct weft_pool_share list[] = {{gpu, 4, NULL}};
    const struct weft_pool_settings settings = {.partitions = WEFT_PARTITIONS_MIXED,
                                                .shares = list,
                                                .share_count = 1,
                                                .rename_by_default = true};
    weft_auto(weft_machine_free) struct weft_machine *m = machine_of("nvidia", "Wsb");
    size_t failed = 0;
    int rc = -ENOMEM;
    for (uint64_t n = 1; rc == -ENOMEM && n < 100; n++) {
        weft_auto(weft_pools_done) struct weft_pools pools = {0};
        (void)weft_mem_fail_after(n);
        rc = weft_pools_plan(m, &settings, &pools, NULL);
        (void)weft_mem_fail_after(0);
        failed += rc == -ENOMEM ? 1 : 0;
    }
    CHECK_INT(rc, 0);
    CHECK(failed > 5);
}

/* ---- ids of shared devices ---- */

struct shared {
    struct weft_inventory *inventory;
    struct weft_pb_arena arena;
    struct weft_buf buf;
};

static void share_up(struct shared *s, uint32_t replicas, bool one_only)
{
    struct weft_machine *m = machine_of("nvidia", "WW");
    m->devices[1].healthy = false;
    const struct weft_inventory_options options = {.replicas = replicas,
                                                   .fail_above_one = one_only};
    CHECK_INT(weft_inventory_new(m, &options, &s->inventory, NULL), 0);
    weft_pb_arena_init(&s->arena, WEFT_KUBELET_ARENA_MAX);
    weft_buf_init(&s->buf, WEFT_KUBELET_MESSAGE_MAX);
}

static void share_down(struct shared *s)
{
    weft_inventory_free(s->inventory);
    weft_pb_arena_done(&s->arena);
    weft_buf_done(&s->buf);
}

static void replicas_have_nvidias_ids(void)
{
    struct shared s;
    uint32_t replica = 9;
    char id[WEFT_INVENTORY_ID_MAX];
    share_up(&s, 3, false);
    CHECK_INT(weft_inventory_find(s.inventory, "W0::0", &replica), 0);
    CHECK_INT(replica, 0);
    CHECK_INT(weft_inventory_find(s.inventory, "W1::2", &replica), 1);
    CHECK_INT(replica, 2);
    CHECK(weft_inventory_find(s.inventory, "W1::3", NULL) == SIZE_MAX);
    CHECK(weft_inventory_find(s.inventory, "W1", NULL) == SIZE_MAX);
    CHECK_STR(weft_inventory_id(s.inventory, 1, 2, id), "W1::2");
    share_down(&s);
}

/* An unhealthy device is so under each of its ids (NVIDIA's plugin issue 1929). */
static void health_reaches_every_replica(void)
{
    struct shared s;
    struct weft_kubelet_devices list = {0};
    share_up(&s, 3, false);
    CHECK_INT(weft_grant_list(s.inventory, &s.arena, &s.buf), 0);
    CHECK_INT(
        weft_kubelet_peer_decode_devices(&s.arena, weft_buf_text(&s.buf), s.buf.len, &list, NULL),
        0);
    CHECK_INT(list.count, 6);
    for (size_t i = 0; i < list.count; i++) {
        char id[WEFT_INVENTORY_ID_MAX];
        (void)snprintf(id, sizeof(id), "W%zu::%zu", i / 3, i % 3);
        CHECK_STR(list.devices[i].id, id);
        CHECK_INT(list.devices[i].healthy, i < 3);
    }
    share_down(&s);
}

static const char *allocate(struct shared *s, const char *const *ids, size_t count)
{
    static char said[512];
    struct weft_error err = {0};
    const struct weft_kubelet_ids one = {.ids = ids, .count = count};
    const struct weft_kubelet_id_lists asked = {.containers = &one, .count = 1};
    weft_auto(weft_buf_done) struct weft_buf request;
    weft_buf_init(&request, WEFT_KUBELET_MESSAGE_MAX);
    CHECK_INT(weft_kubelet_peer_encode_allocate(&s->arena, &asked, &request), 0);
    weft_buf_reset(&s->buf);
    const int rc = weft_grant_allocate(s->inventory, &s->arena, weft_buf_text(&request),
                                       request.len, &s->buf, &err);
    struct weft_kubelet_grants grants = {0};
    if (rc == 0) {
        CHECK_INT(weft_kubelet_peer_decode_grants(&s->arena, weft_buf_text(&s->buf), s->buf.len,
                                                  &grants, NULL),
                  0);
    }
    (void)snprintf(said, sizeof(said), "%s",
                   rc < 0 ? err.message
                   : grants.count == 1 && grants.containers[0].env_count > 0
                       ? grants.containers[0].envs[0].value
                       : "nothing");
    return said;
}

static void ids_become_devices_once(void)
{
    struct shared s;
    share_up(&s, 3, false);
    CHECK_STR(allocate(&s, (const char *const[]){"W0::2", "W0::0"}, 2), "W0");
    CHECK_STR(allocate(&s, (const char *const[]){"W1::0"}, 1), "device W1::0 is unhealthy");
    CHECK_STR(allocate(&s, (const char *const[]){"W0::3"}, 1), "there is no device W0::3");
    share_down(&s);
    share_up(&s, 3, true);
    CHECK_STR(allocate(&s, (const char *const[]){"W0::2"}, 1), "W0");
    CHECK_CONTAINS(allocate(&s, (const char *const[]){"W0::2", "W0::1"}, 2),
                   "a container asks for 2 shared devices: the configuration allows 1");
    share_down(&s);
}

static void an_id_needs_room_for_its_number(void)
{
    struct weft_machine *m = machine_of("nvidia", "W");
    memset(m->devices[0].id, 'x', WEFT_DEVICE_ID_MAX - 1);
    struct weft_inventory *inventory = NULL;
    struct weft_error err = {0};
    const struct weft_inventory_options options = {.replicas = 2};
    CHECK_INT(weft_inventory_new(m, &options, &inventory, &err), -EINVAL);
    CHECK_CONTAINS(err.message, "is too long for an id");
    weft_machine_free(m);
}

static void parts_of_a_machine(void)
{
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    weft_auto(weft_machine_free) struct weft_machine *part = NULL;
    CHECK_INT(weft_machine_new("m", 3, 2, &m, NULL), 0);
    for (size_t i = 0; i < 9; i++) {
        m->bandwidth[i] = 100 + i;
    }
    m->distance[2 * 3 + 0] = WEFT_DISTANCE_PIX;
    m->nic_distance[2 * 2 + 1] = WEFT_DISTANCE_PHB;
    CHECK_INT(weft_machine_subset(m, (const size_t[]){2, 0}, 2, &part, NULL), 0);
    CHECK_INT(part->device_count, 2);
    CHECK_INT(part->devices[0].index, 2);
    CHECK_INT(weft_machine_b(part, 0, 1), 106); /* row 2, column 0 */
    CHECK_INT(weft_machine_b(part, 1, 0), 102);
    CHECK_INT(weft_machine_t(part, 0, 1), WEFT_DISTANCE_PIX);
    CHECK_INT(weft_machine_t(part, 1, 0), WEFT_DISTANCE_SYS);
    CHECK_INT(weft_machine_n(part, 0, 1), WEFT_DISTANCE_PHB);
    CHECK_INT(weft_machine_n(part, 1, 1), WEFT_DISTANCE_SYS);
}

WEFT_SUITE(plugin_pools, {"strategies", strategies}, {"renames", renames}, {"sharing", sharing},
           {"sharing of what is not there is named", sharing_of_what_is_not_there_is_named},
           {"a profile must make a name", a_profile_must_make_a_name},
           {"short memory is an error", short_memory_is_an_error},
           {"replicas have NVIDIA's ids", replicas_have_nvidias_ids},
           {"health reaches every replica", health_reaches_every_replica},
           {"ids become devices once", ids_become_devices_once},
           {"an id needs room for its number", an_id_needs_room_for_its_number},
           {"parts of a machine", parts_of_a_machine})
