/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text exposition format 0.0.4: what /metrics answers. Values in, text out; pure. A
 * program writes its families one after the other, each with its head and all its samples. */
#ifndef WEFT_HTTP_METRICS_H
#define WEFT_HTTP_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct weft_buf;

/* the Content-Type of an answer in this format */
#define WEFT_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum weft_metric_kind { WEFT_METRIC_COUNTER, WEFT_METRIC_GAUGE, WEFT_METRIC_HISTOGRAM };

/* "# HELP" and "# TYPE". Names and help are literals: they are not escaped. */
void weft_metric_head(struct weft_buf *buf, const char *name, enum weft_metric_kind kind,
                      const char *help);

/* Label names and values in turn, NULL at the end; values are escaped. NULL: no labels. */
typedef const char *const *weft_metric_labels;

/* One sample. */
void weft_metric_value(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                       uint64_t value);
void weft_metric_real(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                      double value);

/* Times of one kind, sorted into buckets of 1-2.5-5 steps from 10 µs to 10 s. Zero it to start. */
enum { WEFT_HISTOGRAM_BUCKETS = 19 };
struct weft_histogram {
    uint64_t buckets[WEFT_HISTOGRAM_BUCKETS + 1]; /* the last: above all bounds */
    uint64_t count;
    int64_t sum_ns;
};
void weft_histogram_add(struct weft_histogram *histogram, int64_t ns);
/* All its samples, in seconds. */
void weft_metric_histogram(struct weft_buf *buf, const char *name, weft_metric_labels labels,
                           const struct weft_histogram *histogram);

/* A family of one sample without labels: head and value. */
void weft_metric_single(struct weft_buf *buf, const char *name, enum weft_metric_kind kind,
                        const char *help, uint64_t value);
/* Resident bytes, CPU seconds, open descriptors, threads and start time of this process, under the
 * names that Prometheus' clients use ("process_…"). Reads /proc/self; what cannot be read is left
 * out. */
void weft_metrics_process(struct weft_buf *buf);

#endif
