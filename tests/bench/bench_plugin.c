/* SPDX-License-Identifier: Apache-2.0 */
/* What the device plugin costs a node, seen from outside. Lines of "name value unit": exec →
 * Register (median of 20 starts), resident memory, threads and voluntary switches a second over
 * WEFT_BENCH_SECONDS (60) with ListAndWatch held. Twice: "plugin_…" with a recorded machine,
 * "plugin_nvml_…" where it asks the driver (the tests' mock of NVIDIA's library, 8 GPUs; the mock's
 * own memory counts too). */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pkg/base/file.h"
#include "pkg/base/mem.h"
#include "pkg/base/str.h"
#include "pkg/loop/loop.h"
#include "tests/bench/plugin_bed.h"

enum { STARTS = 20 };

static int64_t field_of(const char *path, const char *key)
{
    weft_autofree char *text = NULL;
    size_t len = 0;
    if (weft_file_read(path, 1U << 20, &text, &len, NULL) < 0) {
        return 0;
    }
    struct weft_str rest = {text, len}, line;
    while (weft_str_line(&rest, &line)) {
        struct weft_str word, value;
        int64_t number = 0;
        if (weft_str_word(&line, &word) && weft_str_eq(word, key) && weft_str_word(&line, &value) &&
            weft_parse_i64(value, 0, INT64_MAX, &number) == 0) {
            return number;
        }
    }
    return 0;
}

/* Sums a field of status over the plugin's threads, and counts them. */
static int64_t over_threads(const struct bed *b, const char *key, int *ret_threads)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)b->pid);
    int64_t sum = 0;
    *ret_threads = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e = dir != NULL ? readdir(dir) : NULL; e != NULL; e = readdir(dir)) {
        if (e->d_name[0] != '.') {
            weft_autofree char *status = weft_asprintf("%s/%s/status", path, e->d_name);
            sum += status != NULL ? field_of(status, key) : 0;
            (*ret_threads)++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return sum;
}

static int compare_times(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void show(const struct bed *b, const char *what, double value, const char *unit)
{
    (void)printf("plugin_%s%s %.*f %s\n", b->machine == NULL ? "nvml_" : "", what,
                 strcmp(unit, "threads") == 0 ? 0
                 : strcmp(unit, "/s") == 0    ? 3
                                              : 2,
                 value, unit);
}

static void measure_idle(struct bed *b)
{
    uint64_t seconds = 60;
    const char *text = getenv("WEFT_BENCH_SECONDS");
    if (text != NULL && weft_parse_u64(weft_str(text), 3600, &seconds) < 0) {
        bed_fail("WEFT_BENCH_SECONDS is not a number of seconds");
    }
    const bool never = false;
    (void)weft_loop_run_until(b->loop, &never, 2 * WEFT_NS_PER_S); /* after the calls */
    int threads = 0;
    const int64_t before = over_threads(b, "voluntary_ctxt_switches:", &threads);
    (void)weft_loop_run_until(b->loop, &never, (int64_t)seconds * WEFT_NS_PER_S);
    const int64_t after = over_threads(b, "voluntary_ctxt_switches:", &threads);
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)b->pid);
    show(b, "rss", (double)field_of(path, "VmRSS:") / 1024, "MB");
    show(b, "rss_anonymous", (double)field_of(path, "RssAnon:") / 1024, "MB");
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)b->pid);
    show(b, "smaps_rss", (double)field_of(path, "Rss:") / 1024, "MB");
    show(b, "threads", threads, "threads");
    if (seconds > 0) {
        show(b, "switches", (double)(after - before) / (double)seconds, "/s");
    }
}

static void measure_starts(struct bed *b)
{
    int64_t ns[STARTS];
    for (size_t i = 0; i < STARTS; i++) {
        bed_start(b);
        ns[i] = b->register_ns;
        bed_stop(b);
    }
    qsort(ns, STARTS, sizeof(ns[0]), compare_times);
    show(b, "exec_register", (double)ns[STARTS / 2] / 1e6, "ms");
    show(b, "exec_register_max", (double)ns[STARTS - 1] / 1e6, "ms");
}

static void measure(struct bed *b)
{
    bed_up(b);
    measure_starts(b);
    bed_watch(b);
    measure_idle(b);
    bed_stop(b);
    bed_down(b);
}

int main(void)
{
    measure(&(struct bed){.machine = "tests/fixtures/machine/hgx-h100-8.json"});
    measure(&(struct bed){.mock = "tests/fixtures/nvml/hgx-h100-8.json", .gpus = 8});
    return 0;
}
