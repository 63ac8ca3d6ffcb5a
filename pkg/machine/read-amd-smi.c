/* SPDX-License-Identifier: Apache-2.0 */
/* From the topology that amd-smi or rocm-smi prints to a machine. A direct xGMI link (one hop) is
 * bandwidth: what the file says, or one nominal rate where it does not say it of all links. The
 * files know nothing of PCIe switches: T is NODE or SYS, by the NUMA nodes and, for PCIe paths, by
 * the hops (2: through one processor, 3: through two). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"

#include "pkg/machine/amd-topo-internal.h"
#include "pkg/machine/machine-internal.h"

enum { HOPS_ONE_PROCESSOR = 2 };

struct builder {
    const struct weft_amd_topo *t;
    struct weft_machine *machine;
    size_t *gpus; /* per device: index of its GPU */
    size_t device_count;
    bool rates; /* the file says the bandwidth of every direct link */
};

static bool has(const struct builder *b, enum weft_amd_table table)
{
    return (b->t->tables & 1U << table) != 0;
}

static uint64_t cell(const struct builder *b, enum weft_amd_table table, size_t i, size_t j)
{
    return has(b, table) ? b->t->cells[table][(b->gpus[i] * b->t->count) + b->gpus[j]] : 0;
}

/* Is the pair joined by a direct link? Without a table of types only xGMI has a bandwidth. */
static bool is_direct(const struct builder *b, size_t i, size_t j)
{
    const bool xgmi = has(b, WEFT_AMD_TYPE) ? cell(b, WEFT_AMD_TYPE, i, j) == WEFT_AMD_LINK_XGMI
                                            : cell(b, WEFT_AMD_BANDWIDTH, i, j) > 0;
    return xgmi && cell(b, WEFT_AMD_HOPS, i, j) <= 1 &&
           cell(b, WEFT_AMD_ACCESS, i, j) != WEFT_AMD_ACCESS_NO;
}

static int pick(struct builder *b)
{
    const struct weft_amd_topo *t = b->t;
    b->gpus = weft_calloc(t->count, sizeof(*b->gpus));
    if (b->gpus == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (t->gpus[i].rows == t->tables) {
            b->gpus[b->device_count++] = i;
        }
    }
    size_t links = 0;
    size_t rated = 0;
    for (size_t i = 0; i < b->device_count; i++) {
        for (size_t j = 0; j < b->device_count; j++) {
            const bool direct = i != j && is_direct(b, i, j);
            links += direct;
            rated += direct && cell(b, WEFT_AMD_BANDWIDTH, i, j) > 0;
        }
    }
    b->rates = links > 0 && rated == links;
    return 0;
}

/* The NUMA node of the nearest processor; unknown where the driver and the kernel contradict. */
static int numa_of(const struct weft_amd_gpu *g)
{
    if (g->numa_node < 0) {
        return g->numa_affinity >= 0 ? g->numa_affinity : -1;
    }
    return g->numa_affinity >= 0 && g->numa_affinity != g->numa_node ? -1 : g->numa_node;
}

static int set_devices(const struct builder *b)
{
    int rc = 0;
    for (size_t i = 0; i < b->device_count; i++) {
        const struct weft_amd_gpu *g = &b->t->gpus[b->gpus[i]];
        struct weft_device *d = &b->machine->devices[i];
        char label[16];
        d->index = g->index;
        d->bdf = g->bdf;
        (void)snprintf(d->id, sizeof(d->id), "GPU%d", d->index);
        (void)snprintf(label, sizeof(label), "%d", numa_of(g));
        weft_device_set_numa(d, label, strlen(label));
        if (rc == 0 && g->numa_node >= 0 && g->numa_affinity >= 0 &&
            g->numa_node != g->numa_affinity) {
            rc = weft_machine_warn(b->machine,
                                   "%s has NUMA node %d but NUMA affinity %d: its node is unknown",
                                   d->id, g->numa_node, g->numa_affinity);
        }
    }
    weft_machine_group_numa(b->machine);
    return rc;
}

static struct weft_reading read_pair(const struct builder *b, size_t i, size_t j)
{
    struct weft_reading r = {.distance = WEFT_DISTANCE_UNKNOWN};
    if (is_direct(b, i, j)) {
        r.bandwidth = b->rates ? cell(b, WEFT_AMD_BANDWIDTH, i, j) : WEFT_MACHINE_LINK_MBPS;
        return r;
    }
    const uint64_t hops = cell(b, WEFT_AMD_HOPS, i, j);
    if (hops == 0 || cell(b, WEFT_AMD_TYPE, i, j) != WEFT_AMD_LINK_PCIE) {
        return r;
    }
    const int gi = b->machine->devices[i].numa_group;
    const int gj = b->machine->devices[j].numa_group;
    const bool apart = gi >= 0 && gj >= 0 && gi != gj;
    r.distance = hops <= HOPS_ONE_PROCESSOR && !apart ? WEFT_DISTANCE_NODE : WEFT_DISTANCE_SYS;
    return r;
}

static int set_pairs(const struct builder *b)
{
    struct weft_machine *m = b->machine;
    for (size_t i = 0; i < b->device_count; i++) {
        for (size_t j = i + 1; j < b->device_count; j++) {
            if (!weft_machine_set_pair(m, i, j, read_pair(b, i, j), read_pair(b, j, i)) &&
                weft_machine_warn(m,
                                  "the tables tell %s to %s otherwise than the way back: the "
                                  "smaller bandwidth and the larger distance count",
                                  m->devices[i].id, m->devices[j].id) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

/* ---- what the file leaves open ---- */

static int warn_cut(const struct builder *b)
{
    const struct weft_amd_topo *t = b->t;
    int rc = 0;
    b->machine->partial = t->cut || b->device_count < t->count;
    if (t->error_line > 0) {
        rc = weft_machine_warn(b->machine, "line %u: %s", t->error_line, t->error_text);
    }
    if (rc == 0 && b->machine->partial) {
        rc = weft_machine_warn(
            b->machine, "the file is cut after line %u: only what is whole is here", t->last_line);
    }
    if (rc == 0 && b->device_count < t->count) {
        rc = weft_machine_warn(b->machine, "%zu of the GPUs lack a whole row and are left out",
                               t->count - b->device_count);
    }
    return rc;
}

static int warn_unsaid(const struct builder *b)
{
    struct weft_machine *m = b->machine;
    size_t unknown = 0;
    bool links = false;
    for (size_t i = 0; i < b->device_count; i++) {
        unknown += m->devices[i].numa_group < 0;
        for (size_t j = 0; j < b->device_count; j++) {
            links = links || (i != j && is_direct(b, i, j));
        }
    }
    int rc = 0;
    if (b->device_count > 1 && !has(b, WEFT_AMD_TYPE) && !has(b, WEFT_AMD_BANDWIDTH)) {
        rc = weft_machine_warn(m, "the file has no table of link types or bandwidths: links are "
                                  "not known");
    } else if (links && !b->rates && has(b, WEFT_AMD_BANDWIDTH)) {
        rc = weft_machine_warn(m, "the file says the bandwidth of some links only: one nominal "
                                  "rate counts for all");
    }
    if (rc == 0 && unknown > 0) {
        rc =
            weft_machine_warn(m, "the file does not say the NUMA node of %zu of the GPUs", unknown);
    }
    return rc;
}

static int fill(const struct builder *b)
{
    weft_free(b->machine->vendor);
    b->machine->vendor = weft_strdup("amd");
    if (b->machine->vendor == NULL) {
        return -ENOMEM;
    }
    int rc = warn_cut(b);
    rc = rc < 0 ? rc : set_devices(b);
    rc = rc < 0 ? rc : warn_unsaid(b);
    return rc < 0 ? rc : set_pairs(b);
}

static int build(struct builder *b, struct weft_machine **ret_machine, struct weft_error *err)
{
    if (pick(b) < 0) {
        return weft_err_nomem(err);
    }
    if (b->device_count == 0) {
        return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                            "%s:%u: none of the %zu GPUs that the tables name has all its rows",
                            b->t->file, b->t->last_line, b->t->count);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = weft_machine_new(b->t->file, b->device_count, 0, &m, err);
    if (rc < 0) {
        return rc;
    }
    b->machine = m;
    rc = fill(b) < 0 ? weft_err_nomem(err) : weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

int weft_machine_read_amd_smi(const char *text, size_t len, const char *name,
                              struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_auto(weft_amd_topo_done) struct weft_amd_topo t = {0};
    const struct weft_str start = weft_str_trim((struct weft_str){text, len});
    const bool json = start.len > 0 && (start.data[0] == '[' || start.data[0] == '{');
    int rc = json ? weft_amd_parse_json(text, len, name, &t, err)
                  : weft_amd_parse_text(text, len, name, &t, err);
    if (rc < 0) {
        return rc;
    }
    struct builder b = {.t = &t};
    rc = build(&b, ret_machine, err);
    weft_free(b.gpus);
    return rc;
}
