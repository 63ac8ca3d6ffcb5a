/* SPDX-License-Identifier: Apache-2.0 */
/* A machine as it is drawn: devices that look alike from everywhere are one row, and each row has
 * its place in the nest of sockets, NUMA nodes and PCIe switches. Pure; what is drawn from it
 * stands in machine-table.c, machine-matrix.c, machine-dot.c and machine-svg.c. */
#ifndef WEFT_CTL_MACHINE_VIEW_H
#define WEFT_CTL_MACHINE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pkg/base/error.h"
#include "pkg/base/mem.h"
#include "pkg/machine/machine.h"

struct weft_allocator;
struct weft_buf;

enum { WEFT_VIEW_LABEL_MAX = 32, WEFT_VIEW_BOX_LABEL_MAX = 80 };

/* A row: one device, or several that are interchangeable, sit in one place and show the same. */
struct weft_view_row {
    size_t device; /* the first of them */
    size_t count;
    char label[WEFT_VIEW_LABEL_MAX]; /* "3", "0-7" */
    int socket;                      /* -1 unknown */
    int numa;                        /* weft_device.numa_group */
    int board;                       /* switch number, -1 none: rows and NICs of one, T <= PXB */
};

/* A NIC's place. */
struct weft_view_nic {
    char label[24]; /* its name if it is short, else "N3" */
    int board;      /* the switch it shares with devices, -1 none */
    int numa;       /* the numa of a row with its NUMA node, -1 none */
};

struct weft_view {
    const struct weft_machine *machine;
    struct weft_allocator *allocator;
    struct weft_view_row *rows; /* in the order of their first devices */
    size_t row_count;
    size_t *row_of;     /* by device */
    size_t *draw_order; /* rows by socket, NUMA node, switch */
    struct weft_view_nic *nics;
    uint64_t most_bandwidth; /* of any pair */
    /* Behind switches a pair has the smaller of the two devices' own bandwidths: then links are
     * drawn to one fabric, and this is a device's own. 0: no link. */
    bool is_switched;
    uint64_t *own_bandwidth; /* by row */
};

int weft_view_new(const struct weft_machine *machine, struct weft_view **ret_view,
                  struct weft_error *err) __attribute__((warn_unused_result));
void weft_view_free(struct weft_view *view);
WEFT_DEFINE_AUTO(struct weft_view, weft_view_free)

/* B and T between two rows; of a row and itself, between two of its devices. */
uint64_t weft_view_b(const struct weft_view *view, size_t i, size_t j);
enum weft_distance weft_view_t(const struct weft_view *view, size_t i, size_t j);
/* Appends the indices of the devices that are in as "0-3,6"; members by device. */
void weft_view_put_indices(const struct weft_machine *m, const bool *members, struct weft_buf *buf);
/* "450", "62.5", "0.5": MB/s as GB/s. */
void weft_view_rate(uint64_t mbps, char *text, size_t size);

/* Walks the nest in drawing order: each box is opened, its rows and NICs named, and closed. */
enum weft_view_box { WEFT_BOX_SOCKET, WEFT_BOX_NUMA, WEFT_BOX_BOARD, WEFT_BOX_COUNT };
struct weft_view_pen {
    void (*open)(void *arg, enum weft_view_box box, const char *label);
    void (*close)(void *arg, enum weft_view_box box);
    void (*row)(void *arg, size_t row);
    void (*nic)(void *arg, size_t nic);
    void *arg;
};
void weft_view_walk(const struct weft_view *view, const struct weft_view_pen *pen);
/* The different bandwidths of the machine's links, greatest first; returns how many, at most max.
 */
size_t weft_view_rates(const struct weft_view *view, uint64_t *rates, size_t max);
/* Words of a source as they may stand in a terminal or a file: control characters become '?'. */
void weft_view_clean(char *text);

/* The outputs; failures stick in buf. */
struct weft_view_style {
    bool color;
    size_t width; /* columns of a terminal */
};
void weft_view_put_table(const struct weft_view *view, const struct weft_view_style *style,
                         struct weft_buf *buf);
void weft_view_put_matrices(const struct weft_view *view, const struct weft_view_style *style,
                            struct weft_buf *buf);
void weft_view_put_dot(const struct weft_view *view, struct weft_buf *buf);
void weft_view_put_svg(const struct weft_view *view, struct weft_buf *buf);

#endif
