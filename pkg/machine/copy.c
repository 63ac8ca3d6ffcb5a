/* SPDX-License-Identifier: Apache-2.0 */
/* A machine once more, for whoever must say something else of it: a machine itself never changes.
 */
#include <errno.h>
#include <string.h>

#include "pkg/machine/machine-internal.h"

int weft_device_copy(struct weft_device *to, const struct weft_device *from)
{
    *to = *from;
    to->node_count = 0;
    to->mount_count = 0;
    memset(to->nodes, 0, sizeof(to->nodes));
    memset(to->mounts, 0, sizeof(to->mounts));
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < from->node_count; i++) {
        rc = weft_machine_add_node(to, from->nodes[i]);
    }
    for (size_t i = 0; rc == 0 && i < from->mount_count; i++) {
        rc = weft_machine_add_mount(to, from->mounts[i]);
    }
    return rc;
}

int weft_machine_set_parents(struct weft_machine *machine, const struct weft_parent *parents,
                             size_t count)
{
    struct weft_parent *copy = weft_calloc(count + 1, sizeof(*copy));
    if (copy == NULL) {
        return -ENOMEM;
    }
    if (count > 0) {
        memcpy(copy, parents, count * sizeof(*copy));
    }
    weft_free(machine->parents);
    machine->parents = copy;
    machine->parent_count = count;
    return 0;
}

int weft_machine_copy_head(struct weft_machine *to, const struct weft_machine *from)
{
    char *vendor = weft_strdup(from->vendor);
    if (vendor == NULL) {
        return -ENOMEM;
    }
    weft_free(to->vendor);
    to->vendor = vendor;
    memcpy(to->driver_version, from->driver_version, sizeof(to->driver_version));
    memcpy(to->runtime_version, from->runtime_version, sizeof(to->runtime_version));
    memcpy(to->clique, from->clique, sizeof(to->clique));
    to->partial = from->partial;
    if (from->nic_count > 0) {
        memcpy(to->nics, from->nics, from->nic_count * sizeof(*to->nics));
    }
    int rc = weft_machine_set_parents(to, from->parents, from->parent_count);
    for (size_t i = 0; rc == 0 && i < from->common_node_count; i++) {
        rc = weft_machine_add_common_node(to, from->common_nodes[i]);
    }
    for (size_t i = 0; rc == 0 && i < from->warning_count; i++) {
        rc = weft_machine_warn(to, "%s", from->warnings[i]);
    }
    return rc;
}

/* From an n x n matrix the picked rows and columns. */
static void pick_square(const void *from, size_t n, size_t cell, const size_t *picked, size_t count,
                        void *to)
{
    const unsigned char *source = from;
    unsigned char *target = to;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++, target += cell) {
            memcpy(target, source + (picked[i] * n + picked[k]) * cell, cell);
        }
    }
}

int weft_machine_subset(const struct weft_machine *from, const size_t *devices, size_t count,
                        struct weft_machine **ret_machine, struct weft_error *err)
{
    const size_t n = from->device_count;
    weft_auto(weft_machine_free) struct weft_machine *to = NULL;
    int rc = weft_machine_new(from->name, count, from->nic_count, &to, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = weft_device_copy(&to->devices[i], &from->devices[devices[i]]);
    }
    rc = rc == 0 ? weft_machine_copy_head(to, from) : rc;
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    pick_square(from->bandwidth, n, sizeof(*from->bandwidth), devices, count, to->bandwidth);
    pick_square(from->distance, n, sizeof(*from->distance), devices, count, to->distance);
    for (size_t i = 0; i < count; i++) {
        memcpy(to->nic_distance + i * from->nic_count,
               from->nic_distance + devices[i] * from->nic_count, from->nic_count);
    }
    *ret_machine = weft_steal(&to);
    return 0;
}

int weft_machine_copy(const struct weft_machine *from, struct weft_machine **ret_machine,
                      struct weft_error *err)
{
    weft_autofree size_t *all = weft_calloc(from->device_count + 1, sizeof(*all));
    if (all == NULL) {
        return weft_err_nomem(err);
    }
    for (size_t i = 0; i < from->device_count; i++) {
        all[i] = i;
    }
    return weft_machine_subset(from, all, from->device_count, ret_machine, err);
}
