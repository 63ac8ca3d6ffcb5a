/* SPDX-License-Identifier: Apache-2.0 */
/* How long a dump takes to become a tree, and the memory it needs: lines of "name value unit".
 * Fabrics: rail-optimised fat-trees of 1,024 and 8,192 hosts with 8 adapters each (65,536 with
 * WEFT_BENCH_LARGE set), and the small fixture. Each case runs in a process of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/fabric/fabric.h"
#include "pkg/tree/build.h"
#include "pkg/tree/tree.h"

enum { RAILS = 8, UNIT = 32, SPINES = 8, RUNS = 5 };

/* pods of `units` units of UNIT hosts; each leaf to all spines of its pod, each spine to 8 cores.
 */
struct shape {
    const char *name;
    size_t pods, units;
    size_t leaf_groups; /* the right answer */
};

static uint64_t guid(unsigned kind, size_t index)
{
    /* spread, so that nothing can be read from the order */
    return ((uint64_t)index * UINT64_C(0x9e3779b97f4a7c15) & UINT64_C(0xffffffffff00)) |
           (uint64_t)kind << 56 | (index & 0xff);
}

static void put_head(FILE *out, const char *key, uint64_t id)
{
    (void)fprintf(out, "vendid=0x2c9\ndevid=0x1021\nsysimgguid=0x%" PRIx64 "\n%s=0x%" PRIx64 "\n",
                  id, key, id);
}

static void put_switch(FILE *out, unsigned kind, size_t index, const char *name)
{
    put_head(out, "switchguid", guid(kind, index));
    (void)fprintf(out,
                  "Switch\t65 \"S-%016" PRIx64 "\"\t\t# \"MF0;%s-%zu:MQM9700/U1\" enhanced port 0 "
                  "lid 1 lmc 0\n",
                  guid(kind, index), name, index);
}

static void put_peer(FILE *out, size_t port, unsigned kind, size_t index, size_t peer_port)
{
    (void)fprintf(out,
                  "[%zu]\t\"S-%016" PRIx64 "\"[%zu]\t\t# \"MF0;switch-%zu:MQM9700/U1\" lid 2 "
                  "4xNDR\n",
                  port, guid(kind, index), peer_port, index);
}

static void put_leaf(FILE *out, const struct shape *s, size_t leaf)
{
    const size_t unit = leaf / RAILS;
    put_switch(out, 1, leaf, "leaf");
    for (size_t h = 0; h < UNIT; h++) {
        const size_t ca = (unit * UNIT + h) * RAILS + leaf % RAILS;
        (void)fprintf(out,
                      "[%zu]\t\"H-%016" PRIx64 "\"[1](%" PRIx64 ") \t\t# \"node-%05zu mlx5_%zu\" "
                      "lid 3 4xNDR\n",
                      h + 1, guid(4, ca), guid(4, ca), unit * UNIT + h, leaf % RAILS);
    }
    for (size_t j = 0; j < SPINES; j++) {
        put_peer(out, UNIT + 1 + j, 2, unit / s->units * SPINES + j, leaf % (s->units * RAILS) + 1);
    }
    (void)fputc('\n', out);
}

static void put_spine(FILE *out, const struct shape *s, size_t spine)
{
    const size_t leaves = s->units * RAILS;
    put_switch(out, 2, spine, "spine");
    for (size_t l = 0; l < leaves; l++) {
        put_peer(out, l + 1, 1, spine / SPINES * leaves + l, UNIT + 1 + spine % SPINES);
    }
    for (size_t c = 0; c < 8; c++) {
        put_peer(out, leaves + 1 + c, 3, spine % SPINES * 8 + c, spine / SPINES + 1);
    }
    (void)fputc('\n', out);
}

static void put_core(FILE *out, const struct shape *s, size_t core)
{
    put_switch(out, 3, core, "core");
    for (size_t p = 0; p < s->pods; p++) {
        put_peer(out, p + 1, 2, p * SPINES + core / 8, s->units * RAILS + 1 + core % 8);
    }
    (void)fputc('\n', out);
}

static void put_ca(FILE *out, size_t ca)
{
    const size_t host = ca / RAILS;
    put_head(out, "caguid", guid(4, ca));
    (void)fprintf(out,
                  "Ca\t1 \"H-%016" PRIx64 "\"\t\t# \"node-%05zu mlx5_%zu\"\n"
                  "[1](%" PRIx64 ") \t\"S-%016" PRIx64 "\"[%zu]\t\t# lid 3 lmc 0 "
                  "\"MF0;leaf:MQM9700/U1\" lid 1 4xNDR\n\n",
                  guid(4, ca), host, ca % RAILS, guid(4, ca),
                  guid(1, host / UNIT * RAILS + ca % RAILS), host % UNIT + 1);
}

static void write_dump(FILE *out, const struct shape *s)
{
    const size_t units = s->pods * s->units;
    (void)fputs("#\n# Topology file: generated for a benchmark\n#\n\n", out);
    for (size_t i = 0; i < units * RAILS; i++) {
        put_leaf(out, s, i);
    }
    for (size_t i = 0; i < s->pods * SPINES; i++) {
        put_spine(out, s, i);
    }
    for (size_t i = 0; i < (size_t)SPINES * 8; i++) {
        put_core(out, s, i);
    }
    for (size_t i = 0; i < units * UNIT * RAILS; i++) {
        put_ca(out, i);
    }
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

static void measure(const char *name, const char *text, size_t len, size_t groups)
{
    int64_t parse[RUNS];
    int64_t tree[RUNS];
    const double before = cpu_ms();
    for (int i = 0; i < RUNS; i++) {
        pass(text, len, groups, &parse[i], &tree[i]);
    }
    qsort(parse, RUNS, sizeof(*parse), compare_times);
    qsort(tree, RUNS, sizeof(*tree), compare_times);
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)printf("tree_%s_dump %.2f MB\n", name, (double)len / 1e6);
    (void)printf("tree_%s_parse_p50 %.2f ms\n", name, (double)parse[RUNS / 2] / 1e6);
    (void)printf("tree_%s_tree_p50 %.2f ms\n", name, (double)tree[RUNS / 2] / 1e6);
    (void)printf("tree_%s_cpu_mean %.2f ms\n", name, (cpu_ms() - before) / RUNS);
    (void)printf("tree_%s_peak_rss %.1f MB\n", name, (double)usage.ru_maxrss / 1e3);
    (void)fflush(stdout);
}

/* Runs the case on the file in a child, so that its peak memory is its own. */
static int in_child(const char *name, FILE *file, size_t groups)
{
    const pid_t pid = fork();
    if (pid == 0) {
        char *text = NULL;
        size_t len = 0;
        struct weft_error err = {0};
        if (lseek(fileno(file), 0, SEEK_SET) < 0 ||
            weft_fd_read(fileno(file), WEFT_FABRIC_TEXT_MAX, &text, &len, &err) < 0) {
            (void)fprintf(stderr, "bench_tree: %s\n", err.message);
            _exit(1);
        }
        measure(name, text, len, groups);
        weft_free(text);
        _exit(0);
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
    write_dump(file, s);
    const int rc = fflush(file) == 0 ? in_child(s->name, file, s->leaf_groups) : 1;
    (void)fclose(file);
    return rc;
}

int main(void)
{
    static const struct shape shapes[] = {
        {"1k", 4, 8, 32}, {"8k", 16, 16, 256}, {"64k", 64, 32, 2048}};
    const size_t count = getenv("WEFT_BENCH_LARGE") != NULL ? 3 : 2;
    int rc = 0;
    for (size_t i = 0; i < count; i++) {
        rc |= generated(&shapes[i]);
    }
    FILE *fixture = fopen("tests/fixtures/fabric/two-racks.ibnetdiscover.txt", "r");
    if (fixture != NULL) {
        rc |= in_child("fixture", fixture, 2);
        (void)fclose(fixture);
    }
    return rc;
}
