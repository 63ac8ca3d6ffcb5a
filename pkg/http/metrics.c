/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /metrics. */
#include "pkg/http/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pkg/base/buf.h"
#include "pkg/base/clock.h"
#include "pkg/base/file.h"
#include "pkg/base/str.h"

static const int64_t bounds_ns[WEFT_HISTOGRAM_BUCKETS] = {
    10000,     25000,      50000,      100000,     250000,      500000,    1000000,
    2500000,   5000000,    10000000,   25000000,   50000000,    100000000, 250000000,
    500000000, 1000000000, 2500000000, 5000000000, 10000000000,
};

void weft_metric_head(struct weft_buf *buf, const char *name, enum weft_metric_kind kind,
                      const char *help)
{
    static const char *const kinds[] = {[WEFT_METRIC_COUNTER] = "counter",
                                        [WEFT_METRIC_GAUGE] = "gauge",
                                        [WEFT_METRIC_HISTOGRAM] = "histogram"};
    (void)weft_buf_printf(buf, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kinds[kind]);
}

static void put_escaped(struct weft_buf *buf, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            (void)weft_buf_puts(buf, "\\n");
            continue;
        }
        if (*text == '"' || *text == '\\') {
            (void)weft_buf_putc(buf, '\\');
        }
        (void)weft_buf_putc(buf, *text);
    }
}

/* Name and labels; extra is a further label, for a histogram's "le", or NULL. */
static void put_name(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                     const char *extra, const char *extra_value)
{
    (void)weft_buf_puts(buf, name);
    char before = '{';
    for (size_t i = 0; labels != NULL && labels[i] != NULL; i += 2) {
        (void)weft_buf_putc(buf, before);
        (void)weft_buf_puts(buf, labels[i]);
        (void)weft_buf_puts(buf, "=\"");
        put_escaped(buf, labels[i + 1]);
        (void)weft_buf_putc(buf, '"');
        before = ',';
    }
    if (extra != NULL) {
        (void)weft_buf_printf(buf, "%c%s=\"%s\"", before, extra, extra_value);
        before = ',';
    }
    if (before == ',') {
        (void)weft_buf_putc(buf, '}');
    }
}

void weft_metric_value(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                       uint64_t value)
{
    put_name(buf, name, labels, NULL, NULL);
    (void)weft_buf_printf(buf, " %" PRIu64 "\n", value);
}

void weft_metric_real(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                      double value)
{
    put_name(buf, name, labels, NULL, NULL);
    (void)weft_buf_printf(buf, " %.12g\n", value);
}

void weft_histogram_add(struct weft_histogram *histogram, int64_t ns)
{
    size_t at = 0;
    while (at < WEFT_HISTOGRAM_BUCKETS && ns > bounds_ns[at]) {
        at++;
    }
    histogram->buckets[at]++;
    histogram->count++;
    histogram->sum_ns += ns;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)WEFT_NS_PER_S;
}

void weft_metric_histogram(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                           const struct weft_histogram *histogram)
{
    char part[128];
    char bound[32];
    uint64_t below = 0;
    (void)snprintf(part, sizeof(part), "%s_bucket", name);
    for (size_t i = 0; i < WEFT_HISTOGRAM_BUCKETS; i++) {
        below += histogram->buckets[i];
        (void)snprintf(bound, sizeof(bound), "%.9g", seconds(bounds_ns[i]));
        put_name(buf, part, labels, "le", bound);
        (void)weft_buf_printf(buf, " %" PRIu64 "\n", below);
    }
    put_name(buf, part, labels, "le", "+Inf");
    (void)weft_buf_printf(buf, " %" PRIu64 "\n", histogram->count);
    (void)snprintf(part, sizeof(part), "%s_sum", name);
    weft_metric_real(buf, part, labels, seconds(histogram->sum_ns));
    (void)snprintf(part, sizeof(part), "%s_count", name);
    weft_metric_value(buf, part, labels, histogram->count);
}

void weft_metric_single(struct weft_buf *buf, const char *name, enum weft_metric_kind kind,
                        const char *help, uint64_t value)
{
    weft_metric_head(buf, name, kind, help);
    weft_metric_value(buf, name, NULL, value);
}

/* ---- the process ---- */

static bool count_descriptors(uint64_t *ret_count)
{
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) {
        return false;
    }
    uint64_t count = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.' ? 1 : 0;
    }
    (void)closedir(folder);
    *ret_count = count - 1; /* without the one that reads */
    return true;
}

/* Fields of /proc/self/stat (proc(5)) by their number there; the first is 3, after the name in
 * brackets, which may hold anything. */
enum {
    STAT_FIRST = 3,
    STAT_USER = 14,
    STAT_SYSTEM = 15,
    STAT_THREADS = 20,
    STAT_START = 22,
    STAT_RSS = 24,
    STAT_FIELDS = 25
};
enum { STAT_MAX = 4096 };

static bool read_stat(uint64_t *fields)
{
    weft_autofree char *whole = NULL;
    size_t len = 0;
    if (weft_file_read("/proc/self/stat", STAT_MAX, &whole, &len, NULL) < 0) {
        return false;
    }
    const char *at = strrchr(whole, ')');
    struct weft_str rest = weft_str(at != NULL ? at + 1 : "");
    for (size_t i = STAT_FIRST; i < STAT_FIELDS; i++) {
        struct weft_str word = {0};
        if (!weft_str_word(&rest, &word)) {
            return false;
        }
        if (weft_parse_u64(word, UINT64_MAX, &fields[i]) < 0) {
            fields[i] = 0; /* the state's letter, and numbers below zero */
        }
    }
    return true;
}

void weft_metrics_process(struct weft_buf *buf)
{
    uint64_t descriptors = 0;
    if (count_descriptors(&descriptors)) {
        weft_metric_single(buf, "process_open_fds", WEFT_METRIC_GAUGE, "Open file descriptors.",
                           descriptors);
    }
    uint64_t fields[STAT_FIELDS] = {0};
    if (!read_stat(fields)) {
        return;
    }
    weft_metric_single(buf, "process_resident_memory_bytes", WEFT_METRIC_GAUGE, "Resident memory.",
                       fields[STAT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE));
    weft_metric_single(buf, "process_threads", WEFT_METRIC_GAUGE, "Threads of the process.",
                       fields[STAT_THREADS]);
    const double tick = (double)sysconf(_SC_CLK_TCK);
    weft_metric_head(buf, "process_cpu_seconds_total", WEFT_METRIC_COUNTER,
                     "User and system CPU time.");
    weft_metric_real(buf, "process_cpu_seconds_total", NULL,
                     (double)(fields[STAT_USER] + fields[STAT_SYSTEM]) / tick);
    /* since the boot; the monotonic clock differs from that only by the time spent suspended */
    const struct weft_clock *clock = weft_clock_system();
    weft_metric_head(buf, "process_start_time_seconds", WEFT_METRIC_GAUGE,
                     "Start of the process since the epoch.");
    weft_metric_real(buf, "process_start_time_seconds", NULL,
                     seconds(weft_clock_realtime(clock) - weft_clock_monotonic(clock)) +
                         (double)fields[STAT_START] / tick);
}
