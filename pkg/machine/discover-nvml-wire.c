/* SPDX-License-Identifier: Apache-2.0 */
/* How the GPUs are wired: what their links say, and the rules of allocation.md "Machine" that make
 * B and T of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pkg/machine/discover-nvml-internal.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

enum { DISTANCE_UNASKED = 0xff };

/* ---- the links of one GPU ---- */

static uint64_t link_field(struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu, uint32_t field,
                           int link)
{
    struct weft_nvml_field f = {.id = field, .scope = (uint32_t)link};
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetFieldValues, gpu->handle, 1, &f);
    return rc == WEFT_NVML_OK && f.rc == WEFT_NVML_OK ? f.value.u32 : UINT64_MAX;
}

/* 1 up, 0 down, -ENOTSUP: that number has no link, -ENOENT: nor has any higher one. Any other
 * trouble with a link is a link down. */
static int ask_state(struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu, int link)
{
    int active = 0;
    const int rc = WEFT_NVML_CALL(nvml, DeviceGetNvLinkState, gpu->handle, (unsigned)link, &active);
    if (rc == WEFT_NVML_FUNCTION_NOT_FOUND) {
        const uint64_t state = link_field(nvml, gpu, WEFT_NVML_FIELD_LINK_STATE, link);
        return state == UINT64_MAX ? -ENOENT : state == 1;
    }
    if (rc == WEFT_NVML_INVALID_ARGUMENT || rc == WEFT_NVML_NOT_SUPPORTED) {
        return rc == WEFT_NVML_NOT_SUPPORTED && link > 0 ? -ENOTSUP : -ENOENT;
    }
    return rc == WEFT_NVML_OK && active == 1;
}

static void ask_version(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu, int link)
{
    unsigned version = 0;
    const int rc =
        WEFT_NVML_CALL(nvml, DeviceGetNvLinkVersion, gpu->handle, (unsigned)link, &version);
    if (rc == WEFT_NVML_FUNCTION_NOT_FOUND) {
        const uint64_t value = link_field(nvml, gpu, WEFT_NVML_FIELD_LINK_VERSION, link);
        version = value == UINT64_MAX ? 0 : (unsigned)value;
    }
    gpu->links[link].version = version;
}

static void ask_remote(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu, int link)
{
    struct weft_nvml_link *l = &gpu->links[link];
    struct weft_nvml_pci pci = {0};
    int type = 0;
    const int rc =
        WEFT_NVML_CALL(nvml, DeviceGetNvLinkRemoteDeviceType, gpu->handle, (unsigned)link, &type);
    l->type = rc == WEFT_NVML_OK ? type : -1;
    if (l->type != WEFT_NVML_REMOTE_SWITCH &&
        WEFT_NVML_CALL(nvml, DeviceGetNvLinkRemotePciInfo, gpu->handle, (unsigned)link, &pci) ==
            WEFT_NVML_OK &&
        pci.bus <= UINT8_MAX && pci.device <= 0x1f) {
        l->remote = (struct weft_bdf){.known = true,
                                      .domain = pci.domain,
                                      .bus = (uint8_t)pci.bus,
                                      .device = (uint8_t)pci.device};
    }
}

/* All links in one call: on an 8-GPU machine 144 questions less. */
static void ask_rates(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    struct weft_nvml_field f[WEFT_NVML_LINKS_MAX] = {0};
    for (int i = 0; i < gpu->link_count; i++) {
        f[i] = (struct weft_nvml_field){.id = WEFT_NVML_FIELD_LINK_SPEED, .scope = (uint32_t)i};
    }
    const bool answered =
        WEFT_NVML_CALL(nvml, DeviceGetFieldValues, gpu->handle, gpu->link_count, f) == WEFT_NVML_OK;
    uint64_t common = UINT64_MAX;
    for (int i = 0; i < gpu->link_count; i++) {
        struct weft_nvml_link *l = &gpu->links[i];
        if (!l->active) {
            continue;
        }
        l->rate_mbps = answered && f[i].rc == WEFT_NVML_OK ? f[i].value.u32 : 0;
        if (l->rate_mbps == 0 && common == UINT64_MAX) {
            common = weft_nvml_field(nvml, gpu->handle, WEFT_NVML_FIELD_LINK_SPEED_COMMON);
            common = common <= UINT32_MAX ? common : 0;
        }
        l->rate_mbps = l->rate_mbps == 0 ? (uint32_t)common : l->rate_mbps;
    }
}

void weft_nvml_ask_links(struct weft_nvml *nvml, struct weft_nvml_gpu *gpu)
{
    bool typeless = false;
    bool up = false;
    for (int link = 0; link < WEFT_NVML_LINKS_MAX; link++) {
        const int state = ask_state(nvml, gpu, link);
        if (state == -ENOENT) {
            break;
        }
        gpu->link_count = link + 1;
        gpu->link_total += state >= 0;
        gpu->links[link] =
            (struct weft_nvml_link){.active = state == 1, .type = -1, .to = WEFT_NVML_LINK_NOWHERE};
        if (state == 1) {
            ask_remote(nvml, gpu, link);
            typeless = typeless || gpu->links[link].type < 0;
            up = true;
        }
    }
    if (up) {
        ask_rates(nvml, gpu);
    }
    if (typeless) {
        const uint64_t count = weft_nvml_field(nvml, gpu->handle, WEFT_NVML_FIELD_SWITCH_LINKS);
        gpu->switch_links = count <= WEFT_NVML_LINKS_MAX ? count : 0;
    }
}

static bool all_rates_known(const struct weft_nvml *nvml)
{
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        for (int l = 0; l < nvml->gpus[i].link_count; l++) {
            if (nvml->gpus[i].links[l].active && nvml->gpus[i].links[l].rate_mbps == 0) {
                return false;
            }
        }
    }
    return true;
}

/* Only a machine whose field values do not tell all rates needs to know. */
static void ask_versions(struct weft_nvml *nvml)
{
    for (size_t i = 0; !all_rates_known(nvml) && i < nvml->gpu_count; i++) {
        struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        for (int l = 0; gpu->trouble == 0 && l < gpu->link_count; l++) {
            if (gpu->links[l].active) {
                ask_version(nvml, gpu, l);
            }
        }
    }
}

/* ---- what is at their other ends ---- */

static int gpu_at(const struct weft_nvml *nvml, const struct weft_bdf *bdf)
{
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        if (bdf->known && nvml->gpus[i].bdf.known && weft_bdf_cmp(&nvml->gpus[i].bdf, bdf) == 0) {
            return (int)i;
        }
    }
    return WEFT_NVML_LINK_NOWHERE;
}

static int aim(const struct weft_nvml *nvml, const struct weft_nvml_gpu *gpu,
               const struct weft_nvml_link *link)
{
    if (link->type == WEFT_NVML_REMOTE_SWITCH) {
        return WEFT_NVML_LINK_SWITCH;
    }
    if (link->type == WEFT_NVML_REMOTE_NPU) {
        return WEFT_NVML_LINK_NOWHERE; /* a link to a CPU is not B */
    }
    const int to = gpu_at(nvml, &link->remote);
    return to < 0 && link->type < 0 && gpu->switch_links > 0 ? WEFT_NVML_LINK_SWITCH : to;
}

void weft_nvml_aim_links(struct weft_nvml *nvml)
{
    ask_versions(nvml);
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        for (int l = 0; l < gpu->link_count; l++) {
            gpu->links[l].to =
                gpu->links[l].active ? aim(nvml, gpu, &gpu->links[l]) : (int)WEFT_NVML_LINK_NOWHERE;
        }
    }
}

/* ---- pairs ---- */

static int distance_of(int ancestor)
{
    switch (ancestor) {
    case WEFT_NVML_ANCESTOR_INTERNAL:
        return WEFT_DISTANCE_PSB;
    case WEFT_NVML_ANCESTOR_SINGLE:
        return WEFT_DISTANCE_PIX;
    case WEFT_NVML_ANCESTOR_MULTIPLE:
        return WEFT_DISTANCE_PXB;
    case WEFT_NVML_ANCESTOR_HOSTBRIDGE:
        return WEFT_DISTANCE_PHB;
    case WEFT_NVML_ANCESTOR_NODE:
        return WEFT_DISTANCE_NODE;
    case WEFT_NVML_ANCESTOR_SYSTEM:
        return WEFT_DISTANCE_SYS;
    default:
        return DISTANCE_UNASKED;
    }
}

static bool may_reach(const struct weft_nvml_gpu *gpu, size_t other)
{
    for (int l = 0; l < gpu->link_count; l++) {
        if (gpu->links[l].to == (int)other || gpu->links[l].to == WEFT_NVML_LINK_SWITCH) {
            return true;
        }
    }
    return false;
}

/* What a lost GPU cannot answer any more stays as it was. */
static void ask_pair(struct weft_nvml *nvml, size_t i, size_t j)
{
    const struct weft_nvml_gpu *a = &nvml->gpus[i], *b = &nvml->gpus[j];
    const size_t at = i * nvml->gpu_count + j;
    int answer = 0;
    if (a->handle == NULL || b->handle == NULL || a->trouble != 0 || b->trouble != 0) {
        return;
    }
    if (i < j && WEFT_NVML_CALL(nvml, DeviceGetTopologyCommonAncestor, a->handle, b->handle,
                                &answer) == WEFT_NVML_OK) {
        nvml->distance[at] = nvml->distance[j * nvml->gpu_count + i] = (uint8_t)distance_of(answer);
    }
    if (may_reach(a, j) && may_reach(b, i) &&
        WEFT_NVML_CALL(nvml, DeviceGetP2PStatus, a->handle, b->handle, WEFT_NVML_P2P_READ,
                       &answer) == WEFT_NVML_OK) {
        nvml->p2p[at] = answer != WEFT_NVML_P2P_OK;
    }
}

void weft_nvml_ask_pairs(struct weft_nvml *nvml)
{
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        for (size_t j = 0; j < nvml->gpu_count; j++) {
            if (i != j) {
                ask_pair(nvml, i, j);
            }
        }
    }
}

/* ---- B ---- */

/* Where the rates of this machine come from: the best origin that every active link has, as rates
 * of different origin are never mixed in one machine. */
enum origin { ORIGIN_FIELD, ORIGIN_VERSION, ORIGIN_FLAT };

/* MB/s one way by the library's numbering of NVLink versions: 1.0 is 1, 2.0 2, 2.2 3, 3.0 4,
 * 3.1 5, 4.0 6, 5.0 7. A link of 2.0 to 4.0 carries 25 GB/s, of 5.0 50. */
static uint32_t rate_of_version(uint32_t version)
{
    static const uint32_t rates[] = {0, 20000, 25000, 25000, 25000, 25000, 25000, 50000};
    return version < WEFT_ARRAY_LEN(rates) ? rates[version] : 0;
}

static enum origin find_origin(const struct weft_nvml *nvml)
{
    const bool fields = all_rates_known(nvml);
    bool versions = true;
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        for (int l = 0; l < gpu->link_count; l++) {
            const struct weft_nvml_link *link = &gpu->links[l];
            versions = versions && (!link->active || rate_of_version(link->version) > 0);
        }
    }
    return fields ? ORIGIN_FIELD : versions ? ORIGIN_VERSION : ORIGIN_FLAT;
}

static uint64_t sum_links(const struct weft_nvml_gpu *gpu, int to, enum origin origin)
{
    uint64_t sum = 0;
    for (int l = 0; l < gpu->link_count; l++) {
        const struct weft_nvml_link *link = &gpu->links[l];
        if (link->active && link->to == to) {
            sum += origin == ORIGIN_FIELD     ? link->rate_mbps
                   : origin == ORIGIN_VERSION ? rate_of_version(link->version)
                                              : (uint32_t)WEFT_MACHINE_LINK_MBPS;
        }
    }
    return sum;
}

static uint64_t bandwidth(const struct weft_nvml *nvml, size_t i, size_t j, enum origin origin)
{
    const struct weft_nvml_gpu *a = &nvml->gpus[i], *b = &nvml->gpus[j];
    if (a->mig || b->mig || nvml->p2p[i * nvml->gpu_count + j] != 0) {
        return 0;
    }
    const bool apart =
        a->clique[0] != '\0' && b->clique[0] != '\0' && strcmp(a->clique, b->clique) != 0;
    const uint64_t from = sum_links(a, WEFT_NVML_LINK_SWITCH, origin);
    const uint64_t to = sum_links(b, WEFT_NVML_LINK_SWITCH, origin);
    return sum_links(a, (int)j, origin) + (apart ? 0 : from < to ? from : to);
}

/* ---- the machine ---- */

static struct weft_reading reading(const struct weft_nvml *nvml, const struct weft_machine *m,
                                   const size_t *gpu_of, size_t i, size_t j, enum origin origin)
{
    const size_t a = gpu_of[i], b = gpu_of[j];
    if (a == b) { /* two instances of one GPU */
        return (struct weft_reading){.distance = WEFT_DISTANCE_PSB};
    }
    int distance = nvml->distance[a * nvml->gpu_count + b];
    if (distance == DISTANCE_UNASKED) {
        /* sysfs's, which is SYS where it knows nothing either: then the NUMA nodes decide */
        const enum weft_distance there = weft_machine_t(m, i, j);
        distance = there == WEFT_DISTANCE_SYS ? (int)WEFT_DISTANCE_UNKNOWN : (int)there;
    }
    return (struct weft_reading){.bandwidth = bandwidth(nvml, a, b, origin), .distance = distance};
}

static int warn_fabric(const struct weft_nvml *nvml, struct weft_machine *m)
{
    static const char *const states[] = {"not supported", "not started", "in progress", "complete"};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        const bool known = gpu->fabric_state >= 0 && gpu->fabric_state < 4;
        if (gpu->fabric_state == WEFT_NVML_FABRIC_NOT_SUPPORTED || gpu->trouble != 0) {
            continue;
        }
        if (gpu->fabric_state != WEFT_NVML_FABRIC_COMPLETED) {
            rc = weft_machine_warn(m, "GPU %zu: its NVLink fabric's registration is %s: no clique",
                                   i, known ? states[gpu->fabric_state] : "in an unknown state");
        } else if (gpu->fabric_status != WEFT_NVML_OK) {
            rc = weft_machine_warn(m, "GPU %zu: its NVLink fabric's registration failed: %s", i,
                                   weft_nvml_reason(gpu->fabric_status));
        }
    }
    return rc;
}

/* The machine's clique, if all its GPUs are in the same one. */
static int set_clique(const struct weft_nvml *nvml, struct weft_machine *m)
{
    const char *first = nvml->gpu_count > 0 ? nvml->gpus[0].clique : "";
    bool same = true, any = false;
    for (size_t i = 0; i < nvml->gpu_count; i++) {
        same = same && strcmp(nvml->gpus[i].clique, first) == 0;
        any = any || nvml->gpus[i].clique[0] != '\0';
    }
    if (same) {
        (void)snprintf(m->clique, sizeof(m->clique), "%s", first);
        return 0;
    }
    return any ? weft_machine_warn(m,
                                   "the GPUs are not all in one NVLink clique: the node has none")
               : 0;
}

static int warn_links(const struct weft_nvml *nvml, enum origin origin, struct weft_machine *m)
{
    int rc = 0;
    bool links = false;
    for (size_t i = 0; rc == 0 && i < nvml->gpu_count; i++) {
        const struct weft_nvml_gpu *gpu = &nvml->gpus[i];
        int up = 0;
        for (int l = 0; l < gpu->link_count; l++) {
            up += gpu->links[l].active;
        }
        links = links || up > 0;
        if (up > 0 && up < gpu->link_total) {
            rc = weft_machine_warn(m, "GPU %zu: %d of %d NVLinks are up", i, up, gpu->link_total);
        }
    }
    if (rc == 0 && links && origin == ORIGIN_FLAT) {
        rc = weft_machine_warn(m, "the rates of NVLinks are unknown: each counts %d MB/s",
                               (int)WEFT_MACHINE_LINK_MBPS);
    }
    return rc;
}

int weft_nvml_wire(const struct weft_nvml *nvml, const size_t *gpu_of, struct weft_machine *m)
{
    const enum origin origin = find_origin(nvml);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->device_count; i++) {
        for (size_t j = i + 1; rc == 0 && j < m->device_count; j++) {
            const struct weft_reading from_i = reading(nvml, m, gpu_of, i, j, origin);
            const struct weft_reading from_j = reading(nvml, m, gpu_of, j, i, origin);
            if (!weft_machine_set_pair(m, i, j, from_i, from_j)) {
                rc = weft_machine_warn(m,
                                       "%s and %s see each other differently (%" PRIu64
                                       " and %" PRIu64 " MB/s): the worse counts",
                                       m->devices[i].id, m->devices[j].id, from_i.bandwidth,
                                       from_j.bandwidth);
            }
        }
    }
    rc = rc == 0 ? warn_links(nvml, origin, m) : rc;
    rc = rc == 0 ? warn_fabric(nvml, m) : rc;
    return rc == 0 ? set_clique(nvml, m) : rc;
}
