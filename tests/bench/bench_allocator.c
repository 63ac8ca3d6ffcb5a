/* SPDX-License-Identifier: Apache-2.0 */
/* How long a pick takes at the size that takes longest, and the tables of a machine: lines of
 * "name value unit". Machines: an NVSwitch machine, where entries 1 to 3 tell nothing apart, and a
 * hybrid mesh, where every subset needs its own cut. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/allocator/allocator.h"
#include "pkg/base/clock.h"
#include "pkg/machine/machine.h"

enum { PICKS = 500, DIRECT_PICKS = 20, BUILDS = 15 };

static void set_pair(struct weft_machine *m, size_t i, size_t j, uint64_t b, enum weft_distance t)
{
    const size_t n = m->device_count;
    m->bandwidth[i * n + j] = m->bandwidth[j * n + i] = b;
    m->distance[i * n + j] = m->distance[j * n + i] = (uint8_t)t;
}

static struct weft_machine *make(size_t n, bool mesh)
{
    struct weft_machine *m = NULL;
    if (weft_machine_new("bench", n, n / 2, &m, NULL) < 0) {
        exit(1);
    }
    for (size_t i = 0; i < n; i++) {
        struct weft_device *d = &m->devices[i];
        (void)snprintf(d->id, sizeof(d->id), "GPU-%zu", i);
        d->bdf = (struct weft_bdf){.known = true, .bus = (uint8_t)(16 + i)};
        d->numa_node = d->numa_group = d->socket = (int)(2 * i / n);
        m->nic_distance[i * m->nic_count + i / 2] = WEFT_DISTANCE_PIX;
        for (size_t j = i + 1; j < n; j++) {
            const enum weft_distance t = i / 2 == j / 2           ? WEFT_DISTANCE_PIX
                                         : 2 * i / n == 2 * j / n ? WEFT_DISTANCE_NODE
                                                                  : WEFT_DISTANCE_SYS;
            const uint64_t uneven = (i * 7 + j * 13) % 5 * 25000;
            set_pair(m, i, j, mesh ? uneven : 450000, t);
        }
    }
    return m;
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
    (void)printf("%s_p50 %.1f us\n", name, (double)ns[count / 2] / 1e3);
    (void)printf("%s_max %.1f us\n", name, (double)ns[count - 1] / 1e3);
}

/* Times count picks of k of all n devices; returns the median. */
static int64_t time_picks(const struct weft_allocator *a, size_t n, size_t k, int64_t *ns,
                          size_t count)
{
    size_t ids[WEFT_MACHINE_DEVICES_MAX];
    for (size_t i = 0; i < n; i++) {
        ids[i] = n - 1 - i;
    }
    for (size_t i = 0; i < count; i++) {
        struct weft_choice choice = {0};
        const struct weft_request request = {.available = ids,
                                             .available_count = n,
                                             .size = (int64_t)k,
                                             .policy = (enum weft_policy)(i % WEFT_POLICY_COUNT)};
        const int64_t start = weft_clock_monotonic(weft_clock_system());
        if (weft_allocator_pick(a, &request, &choice, NULL) < 0) {
            exit(1);
        }
        ns[i] = weft_clock_monotonic(weft_clock_system()) - start;
        weft_choice_done(&choice);
    }
    qsort(ns, count, sizeof(*ns), compare_times);
    return ns[count / 2];
}

/* Reports the size with the greatest median, and returns that. */
static int64_t report_worst_size(const struct weft_allocator *a, size_t n, size_t count,
                                 const char *name)
{
    static int64_t worst[PICKS];
    static int64_t ns[PICKS];
    int64_t worst_median = -1;
    for (size_t k = 1; k < n; k++) {
        const int64_t median = time_picks(a, n, k, ns, count);
        if (median > worst_median) {
            worst_median = median;
            memcpy(worst, ns, count * sizeof(*ns));
        }
    }
    report(name, worst, count);
    return worst_median;
}

/* Returns the median of the size that takes longest. */
static int64_t time_machine(size_t n, bool mesh)
{
    char name[64];
    int64_t ns[BUILDS];
    const char *kind = mesh ? "mesh" : "nvswitch";
    weft_auto(weft_machine_free) struct weft_machine *m = make(n, mesh);
    weft_auto(weft_allocator_free) struct weft_allocator *a = NULL;
    for (size_t i = 0; i < BUILDS; i++) {
        weft_allocator_free(a);
        const int64_t start = weft_clock_monotonic(weft_clock_system());
        if (weft_allocator_new(m, &a, NULL) < 0) {
            exit(1);
        }
        ns[i] = weft_clock_monotonic(weft_clock_system()) - start;
    }
    (void)snprintf(name, sizeof(name), "allocator_precompute_%s_%zu", kind, n);
    report(name, ns, BUILDS);
    (void)snprintf(name, sizeof(name), "allocator_pick_%s_%zu", kind, n);
    const int64_t worst = report_worst_size(a, n, PICKS, name);

    weft_auto(weft_allocator_free) struct weft_allocator *direct = NULL;
    if (weft_allocator_new_direct(m, &direct, NULL) < 0) {
        exit(1);
    }
    (void)snprintf(name, sizeof(name), "allocator_pick_direct_%s_%zu", kind, n);
    (void)report_worst_size(direct, n, DIRECT_PICKS, name);
    return worst;
}

int main(void)
{
    for (size_t n = 8; n <= 16; n += 8) {
        const int64_t switched = time_machine(n, false);
        const int64_t mesh = time_machine(n, true);
        (void)printf("allocator_%zu_worst %.1f us\n", n,
                     (double)(switched > mesh ? switched : mesh) / 1e3);
    }
    return 0;
}
