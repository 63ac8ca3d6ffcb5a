/* SPDX-License-Identifier: Apache-2.0 */
/* A machine once more, for whoever must say something else of it: a machine itself never changes.
 */
#include <string.h>

#include "pkg/machine/machine.h"

static int copy_device(const struct weft_device *from, struct weft_device *to)
{
    *to = *from;
    to->node_count = 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < from->node_count; i++) {
        rc = weft_machine_add_node(to, from->nodes[i]);
    }
    return rc;
}

static int copy_texts(const struct weft_machine *from, struct weft_machine *to)
{
    char *vendor = weft_strdup(from->vendor);
    if (vendor == NULL) {
        return -1;
    }
    weft_free(to->vendor);
    to->vendor = vendor;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < from->common_node_count; i++) {
        rc = weft_machine_add_common_node(to, from->common_nodes[i]);
    }
    for (size_t i = 0; rc == 0 && i < from->warning_count; i++) {
        rc = weft_machine_warn(to, "%s", from->warnings[i]);
    }
    return rc;
}

int weft_machine_copy(const struct weft_machine *from, struct weft_machine **ret_machine,
                      struct weft_error *err)
{
    const size_t n = from->device_count;
    weft_auto(weft_machine_free) struct weft_machine *to = NULL;
    int rc = weft_machine_new(from->name, n, from->nic_count, &to, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = copy_device(&from->devices[i], &to->devices[i]);
    }
    rc = rc == 0 ? copy_texts(from, to) : rc;
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    memcpy(to->driver_version, from->driver_version, sizeof(to->driver_version));
    memcpy(to->runtime_version, from->runtime_version, sizeof(to->runtime_version));
    memcpy(to->clique, from->clique, sizeof(to->clique));
    to->partial = from->partial;
    memcpy(to->nics, from->nics, from->nic_count * sizeof(*to->nics));
    memcpy(to->bandwidth, from->bandwidth, n * n * sizeof(*to->bandwidth));
    memcpy(to->distance, from->distance, n * n);
    memcpy(to->nic_distance, from->nic_distance, n * from->nic_count);
    *ret_machine = weft_steal(&to);
    return 0;
}
