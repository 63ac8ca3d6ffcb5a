/* SPDX-License-Identifier: Apache-2.0 */
/* B from xGMI links: each direction is the sum of its links' bandwidth, a pair the smaller. */
#include <errno.h>

#include "pkg/machine/kfd-internal.h"
#include "pkg/machine/machine-internal.h"

enum { NO_GPU = -1 };

struct sums {
    size_t count;
    uint64_t *directed; /* count x count */
    size_t silent;      /* links whose bandwidth the driver does not tell */
    bool nominal;       /* no link tells it: each counts alike */
    int16_t gpu_of[WEFT_KFD_NODES_MAX + 1];
};

static void map_nodes(const struct weft_kfd_gpus *gpus, struct sums *s)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(s->gpu_of); i++) {
        s->gpu_of[i] = NO_GPU;
    }
    for (size_t i = 0; i < gpus->count; i++) {
        if (gpus->items[i].node != NULL) {
            s->gpu_of[gpus->items[i].node->number] = (int16_t)i;
        }
    }
}

/* An xGMI link between two GPUs? The kernel lists one for every pair of a hive; a pair without a
 * direct link has no bandwidth (amdgpu_xgmi_get_num_links) and a weight of several hops. */
static bool is_xgmi(const struct sums *s, const struct weft_kfd_link *link)
{
    return link->type == WEFT_KFD_LINK_XGMI && link->from <= WEFT_KFD_NODES_MAX &&
           link->to <= WEFT_KFD_NODES_MAX && s->gpu_of[link->from] != NO_GPU &&
           s->gpu_of[link->to] != NO_GPU && link->from != link->to;
}

static void look(const struct weft_kfd *kfd, struct sums *s)
{
    size_t told = 0;
    size_t single_hop = 0;
    for (size_t i = 0; i < kfd->link_count; i++) {
        const struct weft_kfd_link *link = &kfd->links[i];
        if (is_xgmi(s, link)) {
            told += link->bandwidth_mbps > 0;
            s->silent += link->bandwidth_mbps == 0;
            single_hop += link->weight == WEFT_KFD_XGMI_HOP;
        }
    }
    s->nominal = told == 0 && single_hop > 0;
}

static void add_up(const struct weft_kfd *kfd, struct sums *s)
{
    for (size_t i = 0; i < kfd->link_count; i++) {
        const struct weft_kfd_link *link = &kfd->links[i];
        if (!is_xgmi(s, link)) {
            continue;
        }
        const bool hop = link->weight == WEFT_KFD_XGMI_HOP;
        uint64_t *sum =
            &s->directed[(size_t)s->gpu_of[link->from] * s->count + (size_t)s->gpu_of[link->to]];
        *sum += s->nominal ? (hop ? WEFT_MACHINE_LINK_MBPS : 0) : link->bandwidth_mbps;
        *sum = *sum > WEFT_MACHINE_BANDWIDTH_MAX ? WEFT_MACHINE_BANDWIDTH_MAX : *sum;
    }
}

static int set_pairs(struct weft_machine *m, const struct sums *s)
{
    size_t uneven = 0;
    for (size_t i = 0; i < s->count; i++) {
        for (size_t j = i + 1; j < s->count; j++) {
            const int t = (int)weft_machine_t(m, i, j);
            const struct weft_reading there = {s->directed[i * s->count + j], t};
            const struct weft_reading back = {s->directed[j * s->count + i], t};
            uneven += !weft_machine_set_pair(m, i, j, there, back);
        }
    }
    return uneven == 0 ? 0
                       : weft_machine_warn(m,
                                           "%zu pairs have xGMI links of unequal bandwidth in the "
                                           "two directions, the smaller one counts",
                                           uneven);
}

static int warn(struct weft_machine *m, const struct sums *s)
{
    if (s->nominal) {
        return weft_machine_warn(m,
                                 "the driver tells no bandwidth of its xGMI links, each direct one "
                                 "counts as %d MB/s",
                                 (int)WEFT_MACHINE_LINK_MBPS);
    }
    /* kfd_fill_gpu_xgmi_link_to_gpu: a partitioned GPU's links to others have none */
    return s->silent == 0
               ? 0
               : weft_machine_warn(m,
                                   "%zu xGMI links are not direct or the driver tells no "
                                   "bandwidth of them, they do not count",
                                   s->silent);
}

int weft_kfd_set_bandwidth(const struct weft_kfd *kfd, const struct weft_kfd_gpus *gpus,
                           struct weft_machine *m)
{
    weft_autofree struct sums *s = weft_calloc(1, sizeof(*s));
    weft_autofree uint64_t *directed = weft_calloc(gpus->count * gpus->count, sizeof(*directed));
    if (s == NULL || directed == NULL) {
        return -ENOMEM;
    }
    s->count = gpus->count;
    s->directed = directed;
    map_nodes(gpus, s);
    look(kfd, s);
    add_up(kfd, s);
    const int rc = set_pairs(m, s);
    return rc < 0 ? rc : warn(m, s);
}
