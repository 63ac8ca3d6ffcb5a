/* SPDX-License-Identifier: Apache-2.0 */
/* How long a pick takes at the size that takes longest, and the tables of a machine: lines of
 * "name value unit". Machines: an NVSwitch machine, where entries 1 to 3 tell nothing apart; a
 * hybrid mesh, where every subset needs its own cut; the 16-GPU machines that were sold; GPUs in
 * partitions and in replicas; and one without any order, for what the bounded search loses. Lines
 * that begin with # are for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/clock.h"
#include "pkg/machine/machine.h"

enum { PICKS = 500, DIRECT_PICKS = 20, BUILDS = 15, REAL_SIZES = 8 };

/* ---- machines ---- */

static void set_pair(struct weft_machine *m, size_t i, size_t j, uint64_t b, enum weft_distance t)
{
    const size_t n = m->device_count;
    m->bandwidth[i * n + j] = m->bandwidth[j * n + i] = b;
    m->distance[i * n + j] = m->distance[j * n + i] = (uint8_t)t;
}

static struct weft_machine *new_machine(size_t n, size_t nics)
{
    struct weft_machine *m = NULL;
    if (weft_machine_new("bench", n, nics, &m, NULL) < 0) {
        exit(1);
    }
    for (size_t i = 0; i < n; i++) {
        struct weft_device *d = &m->devices[i];
        (void)snprintf(d->id, sizeof(d->id), "GPU-%zu", i);
        d->bdf = (struct weft_bdf){.known = true, .bus = (uint8_t)(16 + i)};
    }
    return m;
}

typedef uint64_t (*link_fn)(size_t i, size_t j);

static uint64_t switched(size_t i, size_t j)
{
    (void)i;
    (void)j;
    return 450000;
}

static uint64_t uneven(size_t i, size_t j)
{
    return (i * 7 + j * 13) % 5 * 25000;
}

static uint64_t none(size_t i, size_t j)
{
    (void)i;
    (void)j;
    return 0;
}

/* Two DGX-1V cube meshes, links of 25,000 MB/s: deviceplugin.md 3.2, E. */
static uint64_t two_cubes(size_t i, size_t j)
{
    static const char *const links[8] = {"01121000", "10210200", "12020010", "21200001",
                                         "10000121", "02001020", "00101201", "00012010"};
    return i / 8 == j / 8 ? 25000 * (uint64_t)(links[i % 8][j % 8] - '0') : 0;
}

/* Switch pairs, one NIC each, two sockets. */
static struct weft_machine *make_pairs(size_t n, link_fn link)
{
    struct weft_machine *m = new_machine(n, n / 2);
    for (size_t i = 0; i < n; i++) {
        struct weft_device *d = &m->devices[i];
        d->numa_node = d->numa_group = d->socket = (int)(2 * i / n);
        m->nic_distance[i * m->nic_count + i / 2] = WEFT_DISTANCE_PIX;
        for (size_t j = i + 1; j < n; j++) {
            const enum weft_distance t = i / 2 == j / 2           ? WEFT_DISTANCE_PIX
                                         : 2 * i / n == 2 * j / n ? WEFT_DISTANCE_NODE
                                                                  : WEFT_DISTANCE_SYS;
            set_pair(m, i, j, link(i, j), t);
        }
    }
    return m;
}

/* GPUs in parts: in CPX mode the parts are linked, in MIG mode they are not. One NIC a GPU. */
static struct weft_machine *make_partitions(size_t gpus, size_t parts, bool linked)
{
    const size_t n = gpus * parts;
    struct weft_machine *m = new_machine(n, gpus);
    for (size_t i = 0; i < n; i++) {
        struct weft_device *d = &m->devices[i];
        const size_t gpu = i / parts;
        d->bdf.bus = (uint8_t)(16 + gpu);
        d->parent = (int)gpu;
        d->partition = (int)(i % parts);
        d->numa_node = d->numa_group = d->socket = (int)(2 * gpu / gpus);
        m->nic_distance[i * m->nic_count + gpu] = WEFT_DISTANCE_PIX;
        for (size_t j = i + 1; j < n; j++) {
            const bool inside = gpu == j / parts;
            const enum weft_distance t = inside                   ? WEFT_DISTANCE_PSB
                                         : 2 * i / n == 2 * j / n ? WEFT_DISTANCE_NODE
                                                                  : WEFT_DISTANCE_SYS;
            const uint64_t b = inside ? 600000 : 64000;
            set_pair(m, i, j, linked ? b : 0, t);
        }
    }
    return m;
}

/* Links and distances by a fixed pseudo-random rule (a linear congruential generator). */
static struct weft_machine *make_wild(size_t n)
{
    struct weft_machine *m = new_machine(n, 0);
    uint64_t state = 11;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            set_pair(m, i, j, (state >> 33) % 4 * 25000, (enum weft_distance)((state >> 40) % 6));
        }
    }
    return m;
}

/* ---- times ---- */

static int64_t now(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void report(const char *name, int64_t *ns, size_t count)
{
    qsort(ns, count, sizeof(*ns), compare_times);
    const int64_t median = ns[count / 2];
    (void)printf("%s_p50 %.1f us\n", name, (double)median / 1e3);
    (void)printf("%s_max %.1f us\n", name, (double)ns[count - 1] / 1e3);
}

/* Which devices are free: all, or all but every skip-th. */
struct load {
    size_t ids[WEFT_MACHINE_DEVICES_MAX];
    size_t count;
    bool exact; /* of the last pick */
    uint64_t min_cut;
};

static void fill_load(struct load *l, size_t n, size_t skip)
{
    l->count = 0;
    for (size_t i = n; i-- > 0;) {
        if (skip == 0 || (i * 5 + i / 8) % skip != 0) {
            l->ids[l->count++] = i;
        }
    }
}

/* Times count picks of k; returns the median. */
static int64_t time_picks(const struct weft_allocator *a, struct load *l, size_t k, int64_t *ns,
                          size_t count)
{
    l->exact = true;
    for (size_t i = 0; i < count; i++) {
        struct weft_choice choice = {0};
        const struct weft_request request = {.available = l->ids,
                                             .available_count = l->count,
                                             .size = (int64_t)k,
                                             .policy = (enum weft_policy)(i % WEFT_POLICY_COUNT)};
        const int64_t start = now();
        if (weft_allocator_pick(a, &request, &choice, NULL) < 0) {
            exit(1);
        }
        ns[i] = now() - start;
        l->exact = l->exact && choice.exact;
        if (request.policy == WEFT_POLICY_PERFORMANCE) {
            l->min_cut = choice.objective.min_cut_mbps;
        }
        weft_choice_done(&choice);
    }
    qsort(ns, count, sizeof(*ns), compare_times);
    return ns[count / 2];
}

/* Reports the size with the greatest median, and returns that; how many sizes were not exact. */
static int64_t report_worst_size(const struct weft_allocator *a, struct load *l, size_t count,
                                 const char *name, size_t *ret_inexact)
{
    static int64_t worst[PICKS];
    static int64_t ns[PICKS];
    int64_t worst_median = -1;
    *ret_inexact = 0;
    for (size_t k = 1; k < l->count; k++) {
        const int64_t median = time_picks(a, l, k, ns, count);
        *ret_inexact += !l->exact;
        if (median > worst_median) {
            worst_median = median;
            memcpy(worst, ns, count * sizeof(*ns));
        }
    }
    report(name, worst, count);
    return worst_median;
}

/* ---- the figures ---- */

/* Returns the median of the size that takes longest. */
static int64_t time_machine(size_t n, const char *kind, link_fn link)
{
    char name[64];
    int64_t ns[BUILDS];
    size_t inexact = 0;
    struct load load;
    weft_auto(weft_machine_free) struct weft_machine *m = make_pairs(n, link);
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    weft_auto(weft_allocator_free) struct weft_allocator *direct = NULL;
    for (size_t i = 0; i < BUILDS; i++) {
        weft_allocator_free(a);
        const int64_t start = now();
        if (weft_allocator_new(m, &a, NULL) < 0) {
            exit(1);
        }
        ns[i] = now() - start;
    }
    (void)snprintf(name, sizeof(name), "allocator_precompute_%s_%zu", kind, n);
    report(name, ns, BUILDS);
    fill_load(&load, n, 0);
    (void)snprintf(name, sizeof(name), "allocator_pick_%s_%zu", kind, n);
    const int64_t worst = report_worst_size(a, &load, PICKS, name, &inexact);
    if (weft_allocator_new_direct(m, &direct, NULL) < 0) {
        exit(1);
    }
    (void)snprintf(name, sizeof(name), "allocator_pick_direct_%s_%zu", kind, n);
    (void)report_worst_size(direct, &load, DIRECT_PICKS, name, &inexact);
    return worst;
}

static void time_partitions(const char *name, size_t gpus, size_t parts, bool linked, size_t skip)
{
    char line[80];
    size_t inexact = 0;
    struct load load;
    weft_auto(weft_machine_free) struct weft_machine *m = make_partitions(gpus, parts, linked);
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    if (weft_allocator_new(m, &a, NULL) < 0) {
        exit(1);
    }
    fill_load(&load, gpus * parts, skip);
    (void)snprintf(line, sizeof(line), "allocator_pick_%s", name);
    (void)report_worst_size(a, &load, DIRECT_PICKS, line, &inexact);
    (void)printf("allocator_pick_%s_not_exact %zu sizes\n", name, inexact);
}

static void time_replicas(enum weft_sharing sharing, const char *name)
{
    enum { GPUS = 8, EACH = 16, IDS = GPUS * EACH };
    static int64_t worst[PICKS];
    static int64_t ns[PICKS];
    struct weft_replica ids[IDS];
    uint32_t totals[GPUS];
    weft_auto(weft_machine_free) struct weft_machine *m = make_pairs(GPUS, uneven);
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    if (weft_allocator_new(m, &a, NULL) < 0) {
        exit(1);
    }
    for (uint32_t i = 0; i < IDS; i++) {
        totals[i / EACH] = EACH;
        ids[i] = (struct weft_replica){.device = i / EACH, .number = i % EACH};
    }
    int64_t worst_median = -1;
    for (int64_t k = 1; k <= IDS; k++) {
        const struct weft_replica_request r = {.available = ids,
                                               .available_count = IDS,
                                               .totals = totals,
                                               .size = k,
                                               .sharing = sharing};
        for (size_t i = 0; i < PICKS; i++) {
            struct weft_replica_choice choice = {0};
            const int64_t start = now();
            if (weft_allocator_pick_replicas(a, &r, &choice, NULL) < 0) {
                exit(1);
            }
            ns[i] = now() - start;
            weft_replica_choice_done(&choice);
        }
        qsort(ns, PICKS, sizeof(*ns), compare_times);
        if (ns[PICKS / 2] > worst_median) {
            worst_median = ns[PICKS / 2];
            memcpy(worst, ns, sizeof(worst));
        }
    }
    report(name, worst, PICKS);
}

/* All sizes of the 16-GPU machines, beside what go-gpuallocator needed for two visible cube meshes
 * on another day's two shared cores (median; it found about the same, within a quarter, with PCIe
 * tiers only). */
static void print_real(void)
{
    static const char *const peer[REAL_SIZES] = {"0.7 us", "2.63 s", "84.8 s", "5.97 s",
                                                 "10.9 s", "2.86 s", "2.14 s", "24 ms"};
    static const link_fn kinds[] = {two_cubes, switched, none};
    static int64_t ns[PICKS];
    int64_t us[3][REAL_SIZES];
    for (size_t kind = 0; kind < 3; kind++) {
        struct load load;
        weft_auto(weft_machine_free) struct weft_machine *m = make_pairs(16, kinds[kind]);
        weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
        if (weft_allocator_new(m, &a, NULL) < 0) {
            exit(1);
        }
        fill_load(&load, 16, 0);
        for (size_t k = 1; k <= REAL_SIZES; k++) {
            us[kind][k - 1] = time_picks(a, &load, k, ns, PICKS);
        }
    }
    (void)printf("# 16 GPUs, all free, median of a pick\n"
                 "# size  two cube meshes  go-gpuallocator    DGX-2    PCIe only\n");
    for (size_t k = 0; k < REAL_SIZES; k++) {
        (void)printf("# %4zu  %12.1f us  %15s  %6.1f us  %6.1f us\n", k + 1, (double)us[0][k] / 1e3,
                     peer[k], (double)us[1][k] / 1e3, (double)us[2][k] / 1e3);
    }
}

/* No set of k has a smallest degree, and so no cut, above this: each device's best k - 1 links, of
 * which the k-th best device counts. */
static uint64_t best_cut_bound(const struct weft_machine *m, size_t k)
{
    static int64_t row[WEFT_MACHINE_DEVICES_MAX];
    static int64_t sums[WEFT_MACHINE_DEVICES_MAX];
    const size_t n = m->device_count;
    for (size_t i = 0; i < n; i++) {
        sums[i] = 0;
        for (size_t j = 0; j < n; j++) {
            row[j] = (int64_t)weft_machine_b(m, i, j);
        }
        qsort(row, n, sizeof(*row), compare_times);
        for (size_t j = 0; j + 1 < k; j++) {
            sums[i] += row[n - 1 - j];
        }
    }
    qsort(sums, n, sizeof(*sums), compare_times);
    return (uint64_t)sums[n - k];
}

/* The bounded search: its time, and how far its cut is from the best bound known. */
static void time_bounded(size_t n, size_t k)
{
    static int64_t ns[PICKS];
    char name[80];
    struct load load;
    weft_auto(weft_machine_free) struct weft_machine *m = make_wild(n);
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    if (weft_allocator_new(m, &a, NULL) < 0) {
        exit(1);
    }
    fill_load(&load, n, 0);
    const int64_t median = time_picks(a, &load, k, ns, DIRECT_PICKS);
    const uint64_t bound = best_cut_bound(m, k);
    (void)snprintf(name, sizeof(name), "allocator_%s_%zu_of_%zu", load.exact ? "exact" : "bounded",
                   k, n);
    (void)printf("%s_p50 %.1f us\n", name, (double)median / 1e3);
    (void)printf("%s_gap %.1f %%\n", name, 100.0 * (1.0 - (double)load.min_cut / (double)bound));
}

int main(void)
{
    for (size_t n = 8; n <= 16; n += 8) {
        const int64_t nvswitch = time_machine(n, "nvswitch", switched);
        const int64_t mesh = time_machine(n, "mesh", uneven);
        (void)printf("allocator_%zu_worst %.1f us\n", n,
                     (double)(nvswitch > mesh ? nvswitch : mesh) / 1e3);
    }
    time_partitions("cpx_64", 8, 8, true, 0);
    time_partitions("cpx_64_fragmented", 8, 8, true, 3);
    time_partitions("mig_56", 8, 7, false, 0);
    time_replicas(WEFT_SHARING_DISTRIBUTED, "allocator_replicas_128_distributed");
    time_replicas(WEFT_SHARING_PACKED, "allocator_replicas_128_packed");
    time_bounded(20, 10);
    time_bounded(32, 8);
    time_bounded(64, 16);
    time_bounded(200, 60);
    time_bounded(1024, 512);
    print_real();
    return 0;
}
