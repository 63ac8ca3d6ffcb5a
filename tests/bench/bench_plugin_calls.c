/* SPDX-License-Identifier: Apache-2.0 */
/* What the kubelet waits for: a preferred allocation and an Allocate of each size on a node with 16
 * GPUs, beside the emptiest call there is (GetDevicePluginOptions), which shows what gRPC, the
 * socket and this machine's load cost. Calls alternate: one pair is one of each, the one first and
 * then the other, WEFT_BENCH_PAIRS (5,000) pairs a size, and a ratio is the median of the pairs'
 * ratios. Times are printed for the median of the sizes. Then how often the vendor's library was
 * called meanwhile.
 *
 * An idle processor goes to sleep some microseconds after its last thread waits, and in a virtual
 * machine waking it takes longer than all that the plugin does. A call that takes 5 us more then
 * takes 30 us more, or not, as chance has it. So each processor is kept awake by a thread that runs
 * only when nothing else wants to. WEFT_BENCH_SLEEPY=1 leaves that out. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "pkg/base/buf.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/kubelet/kubelet.h"
#include "pkg/pb/arena.h"
#include "tests/bench/plugin_bed.h"

enum { WARM_UP = 200, PROCESSORS_MAX = 256 };

struct question {
    const char *name, *method;
    struct weft_buf bytes[BED_GPUS_MAX]; /* by size - 1 */
    double ratios[BED_GPUS_MAX], us[BED_GPUS_MAX];
};

/* ---- processors that do not sleep ---- */

static struct {
    pthread_t threads[PROCESSORS_MAX];
    size_t count;
    atomic_bool enough;
} awake;

static void *stay_awake(void *data)
{
    (void)data;
    while (!atomic_load_explicit(&awake.enough, memory_order_relaxed)) {
    }
    return NULL;
}

static void wake_processors(void)
{
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof(ours), &ours) < 0) {
        bed_fail("no processors");
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE && awake.count < PROCESSORS_MAX; cpu++) {
        if (!CPU_ISSET(cpu, &ours)) {
            continue;
        }
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_t *thread = &awake.threads[awake.count];
        if (pthread_create(thread, NULL, stay_awake, NULL) != 0) {
            bed_fail("no thread");
        }
        awake.count++;
        if (pthread_setaffinity_np(*thread, sizeof(one), &one) != 0 ||
            pthread_setschedparam(*thread, SCHED_IDLE, &(struct sched_param){0}) != 0) {
            bed_fail("a processor cannot be kept awake");
        }
    }
}

static void let_sleep(void)
{
    atomic_store(&awake.enough, true);
    for (size_t i = 0; i < awake.count; i++) {
        (void)pthread_join(awake.threads[i], NULL);
    }
}

/* ---- what is asked, and how long it takes ---- */

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(values[0]), compare_numbers);
    return values[count / 2];
}

static size_t pairs_wanted(void)
{
    const char *text = getenv("WEFT_BENCH_PAIRS");
    uint64_t pairs = 5000;
    if (text != NULL && (weft_parse_u64(weft_str(text), 1000000, &pairs) < 0 || pairs == 0)) {
        bed_fail("WEFT_BENCH_PAIRS is not a number of pairs");
    }
    return (size_t)pairs;
}

/* Both questions of each size about all devices of the node. */
static void write_questions(const struct bed *b, struct question *preferred,
                            struct question *allocate)
{
    weft_auto(weft_pb_arena_done) struct weft_pb_arena arena;
    weft_pb_arena_init(&arena, WEFT_KUBELET_ARENA_MAX);
    const struct weft_kubelet_ids all = {.ids = (const char *const *)b->ids, .count = b->id_count};
    for (size_t i = 0; i < b->id_count; i++) {
        const struct weft_kubelet_preferred one = {.available = all, .size = (int32_t)i + 1};
        const struct weft_kubelet_ids chosen = {.ids = all.ids, .count = i + 1};
        weft_buf_init(&preferred->bytes[i], WEFT_KUBELET_MESSAGE_MAX);
        weft_buf_init(&allocate->bytes[i], WEFT_KUBELET_MESSAGE_MAX);
        if (weft_kubelet_peer_encode_preferred(&arena,
                                               &(struct weft_kubelet_preferred_request){&one, 1},
                                               &preferred->bytes[i]) < 0 ||
            weft_kubelet_peer_encode_allocate(&arena, &(struct weft_kubelet_id_lists){&chosen, 1},
                                              &allocate->bytes[i]) < 0) {
            bed_fail("no memory");
        }
    }
}

static void measure_size(struct bed *b, struct question *q, size_t size, double *ratios, double *us,
                         size_t pairs)
{
    struct weft_buf empty = {0};
    weft_buf_init(&empty, 16);
    for (size_t i = 0; i < pairs + WARM_UP; i++) {
        const bool floor_first = i % 2 == 0;
        double floor = 0;
        double ns = 0;
        for (size_t call = 0; call < 2; call++) {
            if ((call == 0) == floor_first) {
                floor = (double)bed_call(b, WEFT_KUBELET_OPTIONS, &empty);
            } else {
                ns = (double)bed_call(b, q->method, &q->bytes[size - 1]);
            }
        }
        const size_t at = i < WARM_UP ? 0 : i - WARM_UP;
        ratios[at] = ns / floor;
        us[at] = ns / 1e3;
    }
    weft_buf_done(&empty);
    q->ratios[size - 1] = median(ratios, pairs);
    q->us[size - 1] = median(us, pairs);
    (void)printf("plugin_%s_%zu_ratio %.3f ratio\n", q->name, size, q->ratios[size - 1]);
    (void)fflush(stdout);
}

static void measure(struct bed *b, struct question *q, size_t pairs)
{
    double *ratios = weft_calloc(pairs, sizeof(*ratios));
    double *us = weft_calloc(pairs, sizeof(*us));
    if (ratios == NULL || us == NULL) {
        bed_fail("no memory");
    }
    for (size_t size = 1; size <= b->id_count; size++) {
        measure_size(b, q, size, ratios, us, pairs);
    }
    weft_free(ratios);
    weft_free(us);
    double worst = 0;
    for (size_t i = 0; i < b->id_count; i++) {
        worst = q->ratios[i] > worst ? q->ratios[i] : worst;
        weft_buf_done(&q->bytes[i]);
    }
    (void)printf("plugin_%s_worst_ratio %.3f ratio\n", q->name, worst);
    (void)printf("plugin_%s_p50 %.0f us\n", q->name, median(q->us, b->id_count));
}

int main(void)
{
    const size_t pairs = pairs_wanted();
    struct bed b = {.mock = "tests/fixtures/nvml/dgx2.json", .gpus = BED_GPUS_MAX};
    if (setenv("WEFT_RESCAN", "30m", 1) < 0) { /* no look of its own at the driver meanwhile */
        bed_fail("no environment");
    }
    bed_up(&b);
    bed_watch(&b);
    if (b.id_count != BED_GPUS_MAX) {
        bed_fail("not 16 devices");
    }
    struct question preferred = {.name = "preferred", .method = WEFT_KUBELET_PREFERRED};
    struct question allocate = {.name = "allocate", .method = WEFT_KUBELET_ALLOCATE};
    write_questions(&b, &preferred, &allocate);
    if (getenv("WEFT_BENCH_SLEEPY") == NULL) {
        wake_processors();
    }
    const uint64_t before = bed_vendor_calls(&b);
    measure(&b, &preferred, pairs);
    measure(&b, &allocate, pairs);
    let_sleep();
    (void)printf("plugin_vendor_calls_before %llu calls\n", (unsigned long long)before);
    (void)printf("plugin_vendor_calls_meanwhile %llu calls\n",
                 (unsigned long long)(bed_vendor_calls(&b) - before));
    bed_stop(&b);
    bed_down(&b);
    return 0;
}
