/* SPDX-License-Identifier: Apache-2.0 */
/* B from the NVLinkBandwidth and XGMIBandwidth matrices of an lstopo file. Their objects are OS or
 * PCI devices: GPUs, switches, and processors (which do not count). Behind switches B is the
 * smaller of the two GPUs' sums to them (allocation.md). */
#include <errno.h>
#include <inttypes.h>

#include "pkg/machine/lstopo-build-internal.h"
#include "pkg/machine/machine-internal.h"

enum {
    ROLE_NONE = -1,   /* neither: a processor */
    ROLE_SWITCH = -2, /* else: a device's index */
};

struct links {
    const struct weft_lstopo_build *b;
    uint64_t *to_switches; /* per device */
    bool *seen;            /* per device: in a matrix */
};

static int device_of(const struct weft_lstopo_build *b, size_t function, size_t osdev)
{
    int found = ROLE_NONE;
    for (size_t i = 0; i < b->device_count; i++) {
        const struct weft_lstopo_device *d = &b->devices[i];
        if (d->node == function && (d->partition < 0 || d->osdev == osdev)) {
            found = (int)i;
        }
    }
    return found;
}

static int role_of(const struct weft_lstopo_build *b, uint64_t gp_index)
{
    for (size_t i = 0; i < b->l->osdev_count; i++) {
        if (b->l->osdevs[i].gp_index == gp_index) {
            return device_of(b, b->l->osdevs[i].function, i);
        }
    }
    for (size_t i = 0; i < b->l->object_count; i++) {
        if (b->l->objects[i].gp_index == gp_index) {
            return b->l->objects[i].nvswitch ? ROLE_SWITCH : device_of(b, i, WEFT_PCI_NONE);
        }
    }
    return ROLE_NONE;
}

/* Adds what one row says of device i. */
static int add_row(const struct links *k, const struct weft_lstopo_matrix *matrix, const int *roles,
                   size_t row, struct weft_error *err)
{
    struct weft_machine *m = k->b->machine;
    const size_t i = (size_t)roles[row];
    k->seen[i] = true;
    for (size_t column = 0; column < matrix->count; column++) {
        const uint64_t value = matrix->values[(row * matrix->count) + column];
        if (column == row || roles[column] == ROLE_NONE || roles[column] == roles[row]) {
            continue;
        }
        uint64_t *sum = roles[column] == ROLE_SWITCH
                            ? &k->to_switches[i]
                            : &m->bandwidth[(i * m->device_count) + (size_t)roles[column]];
        if (value > WEFT_MACHINE_BANDWIDTH_MAX / 2 ||
            *sum + value > WEFT_MACHINE_BANDWIDTH_MAX / 2) {
            return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                "%s:%u: a bandwidth of %" PRIu64 " MB/s is more than any link has",
                                k->b->l->file, matrix->line, value);
        }
        *sum += value;
    }
    return 0;
}

static int add_matrix(const struct links *k, const struct weft_lstopo_matrix *matrix,
                      struct weft_error *err)
{
    weft_autofree int *roles = weft_calloc(matrix->count, sizeof(*roles));
    if (roles == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < matrix->count; i++) {
        roles[i] = role_of(k->b, matrix->objects[i]);
        for (size_t j = 0; roles[i] >= 0 && j < i; j++) {
            if (roles[j] == roles[i]) {
                return weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                                    "%s:%u: the matrix of bandwidths has %s twice", k->b->l->file,
                                    matrix->line, k->b->machine->devices[roles[i]].id);
            }
        }
    }
    for (size_t i = 0; i < matrix->count; i++) {
        const int rc = roles[i] >= 0 ? add_row(k, matrix, roles, i, err) : 0;
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

static int set_pairs(const struct links *k)
{
    struct weft_machine *m = k->b->machine;
    const size_t n = m->device_count;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            const uint64_t si = k->to_switches[i];
            const uint64_t sj = k->to_switches[j];
            const uint64_t through = si < sj ? si : sj;
            const int distance =
                weft_pci_distance(&k->b->l->tree, k->b->devices[i].node, k->b->devices[j].node);
            const struct weft_reading from_i = {m->bandwidth[(i * n) + j] + through, distance};
            const struct weft_reading from_j = {m->bandwidth[(j * n) + i] + through, distance};
            if (!weft_machine_set_pair(m, i, j, from_i, from_j) &&
                weft_machine_warn(
                    m,
                    "%s to %s has %" PRIu64 " MB/s, the way back %" PRIu64 ": the smaller counts",
                    m->devices[i].id, m->devices[j].id, from_i.bandwidth, from_j.bandwidth) < 0) {
                return -ENOMEM;
            }
        }
    }
    return 0;
}

static int warn_unsaid(const struct links *k)
{
    struct weft_machine *m = k->b->machine;
    if (m->device_count < 2) {
        return 0;
    }
    if (k->b->l->matrix_count == 0) {
        return weft_machine_warn(m, "the file has no matrix of NVLink or xGMI bandwidths: direct "
                                    "links are not known");
    }
    size_t unsaid = 0;
    for (size_t i = 0; i < m->device_count; i++) {
        unsaid += !k->seen[i];
    }
    return unsaid == 0 ? 0
                       : weft_machine_warn(m,
                                           "%zu of the GPUs are in no matrix of bandwidths: their "
                                           "direct links are not known",
                                           unsaid);
}

int weft_lstopo_set_links(const struct weft_lstopo_build *b, struct weft_error *err)
{
    weft_autofree uint64_t *to_switches = weft_calloc(b->device_count, sizeof(*to_switches));
    weft_autofree bool *seen = weft_calloc(b->device_count, sizeof(*seen));
    if (to_switches == NULL || seen == NULL) {
        return weft_err_nomem(err);
    }
    const struct links k = {.b = b, .to_switches = to_switches, .seen = seen};
    for (size_t i = 0; i < b->l->matrix_count; i++) {
        const int rc = add_matrix(&k, &b->l->matrices[i], err);
        if (rc < 0) {
            return rc;
        }
    }
    const int rc = warn_unsaid(&k) < 0 ? -ENOMEM : set_pairs(&k);
    return rc < 0 ? weft_err_nomem(err) : 0;
}
