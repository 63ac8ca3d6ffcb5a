/* SPDX-License-Identifier: Apache-2.0 */
/* How long a dump takes to become a tree, the memory it needs, and how often the tree is right:
 * lines of "name value unit". Fabrics: rail-optimised fat-trees of 1,024 to 65,536 hosts with one
 * adapter each (the cost of an adapter must not grow), 8,192 hosts with 8 (65,536 with 8 if
 * WEFT_BENCH_LARGE is set), and the small fixture. Each case runs in a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"
#include "tests/bench/fabric_gen.h"
#include "tests/bench/fabric_gen_cases.h"

enum { UNIT = 32, SPINES = 8, CORES = 64, RUNS = 5 };

/* pods of `units` units of UNIT hosts; each leaf to all spines of its pod, each spine to 8 cores */
struct shape {
    const char *name;
    size_t pods, units, rails;
};

static size_t unit_count(const struct shape *s)
{
    return s->pods * s->units;
}

static int write_dump(FILE *out, const struct shape *s)
{
    weft_auto(gen_done) struct gen g;
    weft_auto(weft_buf_done) struct weft_buf buf;
    weft_buf_init(&buf, WEFT_FABRIC_TEXT_MAX);
    gen_init(&g, 1);
    struct gen_rft shape = {.pods = s->pods,
                            .units = s->units,
                            .nodes = UNIT,
                            .rails = s->rails,
                            .spines = SPINES,
                            .cores = CORES};
    gen_rail_fat_tree(&g, &shape);
    gen_write(&g, &(struct gen_text){.shuffle = false}, &buf);
    return fwrite(buf.data, 1, buf.len, out) == buf.len && fflush(out) == 0 ? 0 : 1;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t now(void)
{
    return weft_clock_monotonic(weft_clock_system());
}

/* One pass; the tree's closest tier must have that many groups (0: any). */
static void pass(const char *text, size_t len, size_t groups, int64_t *ret_parse, int64_t *ret_tree)
{
    weft_auto(weft_fabric_free) struct weft_fabric *fabric = NULL;
    weft_auto(weft_tree_free) struct weft_tree *tree = NULL;
    struct weft_error err = {0};
    const int64_t start = now();
    int rc = weft_parse_ibnetdiscover(text, len, "dump", &fabric, &err);
    const int64_t parsed = now();
    rc = rc == 0 ? weft_tree_from_fabric(fabric, NULL, 0, NULL, &tree, &err) : rc;
    *ret_tree = now() - parsed;
    *ret_parse = parsed - start;
    if (rc < 0 || tree->tier_count == 0 || (groups > 0 && tree->tiers[0].group_count != groups)) {
        (void)fprintf(stderr, "bench_tree: wrong tree: %s\n", err.message);
        exit(1);
    }
}

/* Processor time of the process so far: what counts where others use the processors too. */
static double cpu_ms(void)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

/* adapters: 0 if the cost of one is not to be told */
static void measure(const char *name, const char *text, size_t len, size_t groups, size_t adapters)
{
    int64_t parse[RUNS];
    int64_t tree[RUNS];
    const double before = cpu_ms();
    for (int i = 0; i < RUNS; i++) {
        pass(text, len, groups, &parse[i], &tree[i]);
    }
    const double cpu = (cpu_ms() - before) / RUNS;
    qsort(parse, RUNS, sizeof(*parse), compare_times);
    qsort(tree, RUNS, sizeof(*tree), compare_times);
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf("tree_%s_dump %.2f MB\n", name, (double)len / 1e6);
    (void)printf("tree_%s_parse_p50 %.2f ms\n", name, (double)parse[RUNS / 2] / 1e6);
    (void)printf("tree_%s_tree_p50 %.2f ms\n", name, (double)tree[RUNS / 2] / 1e6);
    (void)printf("tree_%s_cpu_mean %.2f ms\n", name, cpu);
    if (adapters > 0) {
        (void)printf("tree_%s_cpu_per_adapter %.2f us\n", name, cpu * 1e3 / (double)adapters);
    }
    (void)printf("tree_%s_peak_rss %.1f MB\n", name, (double)usage.ru_maxrss / 1e3);
}

static int measure_file(const char *name, FILE *file, size_t groups, size_t adapters)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    struct weft_error err = {0};
    if (lseek(fileno(file), 0, SEEK_SET) < 0 ||
        weft_fd_read(fileno(file), WEFT_FABRIC_TEXT_MAX, &text, &len, &err) < 0) {
        (void)fprintf(stderr, "bench_tree: %s\n", err.message);
        return 1;
    }
    measure(name, text, len, groups, adapters);
    return 0;
}

/* Writes (shape) or measures in a child, so that each has its own peak of memory. */
static int in_child(const char *name, FILE *file, const struct shape *shape, size_t groups,
                    size_t adapters)
{
    (void)fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        const int rc =
            shape != NULL ? write_dump(file, shape) : measure_file(name, file, groups, adapters);
        (void)fflush(stdout);
        _exit(rc);
    }
    int status = 1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

static int generated(const struct shape *s)
{
    FILE *file = tmpfile();
    if (file == NULL) {
        return 1;
    }
    const size_t units = unit_count(s);
    int rc = in_child(s->name, file, s, 0, 0);
    rc = rc == 0 ? in_child(s->name, file, NULL, units, units * UNIT * s->rails) : rc;
    (void)fclose(file);
    return rc;
}

/* How often the tree is the true one, beside what the design's prototype reached. */
static int rates(void)
{
    size_t count = 0;
    int rc = 0;
    const struct gen_series *rows = gen_series(&count);
    for (size_t i = 0; i < count; i++) {
        const unsigned right = gen_series_right(&rows[i], GEN_DRAWS);
        (void)printf("tree_exact_%s %u of_%d\n", rows[i].name, right, (int)GEN_DRAWS);
        (void)printf("tree_exact_%s_prototype %u of_%d\n", rows[i].name, rows[i].least,
                     (int)GEN_DRAWS);
        rc |= right < rows[i].least;
    }
    const struct gen_case *cases = gen_cases(&count);
    for (size_t i = 0; i < count; i++) {
        weft_auto(gen_done) struct gen g;
        weft_auto(weft_buf_done) struct weft_buf sizes;
        weft_buf_init(&sizes, 4096);
        gen_init(&g, 1 + i);
        cases[i].make(&g);
        weft_auto(weft_tree_free) struct weft_tree *tree = gen_tree(&g, NULL);
        gen_sizes(tree, &sizes);
        const bool exact = strcmp(weft_buf_text(&sizes), cases[i].sizes) == 0;
        (void)printf("tree_exact_%s %d of_1\n", cases[i].name, exact);
        rc |= !exact;
    }
    return rc;
}

static int churn(void)
{
    const struct gen_churn c = gen_churn(1, GEN_CHURN_EVENTS, NULL);
    (void)printf("tree_churn_writes %zu of_%d_events\n", c.writes, (int)GEN_CHURN_EVENTS);
    (void)printf("tree_churn_writes_unavoidable %zu of_%d_events\n", c.least,
                 (int)GEN_CHURN_EVENTS);
    (void)printf("tree_churn_writes_prototype %d of_%d_events\n", (int)GEN_CHURN_WRITES,
                 (int)GEN_CHURN_EVENTS);
    (void)printf("tree_churn_identities %zu of_%d_events\n", c.identities, (int)GEN_CHURN_EVENTS);
    (void)printf("tree_churn_worst %zu writes\n", c.worst);
    (void)printf("tree_churn_worst_prototype %d writes\n", (int)GEN_CHURN_WORST);
    return c.worst > GEN_CHURN_WORST || c.writes > c.least;
}

int main(void)
{
    static const struct shape shapes[] = {{"1k", 4, 8, 1},     {"4k", 8, 16, 1},
                                          {"16k", 16, 32, 1},  {"64k", 64, 32, 1},
                                          {"8k_8", 16, 16, 8}, {"64k_8", 64, 32, 8}};
    const size_t count = WEFT_ARRAY_LEN(shapes) - (getenv("WEFT_BENCH_LARGE") == NULL);
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        rc |= generated(&shapes[i]);
    }
    FILE *fixture = fopen("tests/fixtures/fabric/two-racks.ibnetdiscover.txt", "r");
    if (fixture != NULL) {
        rc |= in_child("fixture", fixture, NULL, 2, 0);
        (void)fclose(fixture);
    }
    return rc | rates() | churn();
}
