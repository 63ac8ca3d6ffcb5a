/* SPDX-License-Identifier: Apache-2.0 */
/* Puts what a host says into a machine: NICs, NUMA, sockets, PCIe links, T and N. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

int weft_host_machine(const struct weft_host *host, const char *name, size_t device_count,
                      struct weft_machine **ret_machine, struct weft_error *err)
{
    weft_autofree struct weft_nic *nics = NULL;
    size_t nic_count = 0;
    size_t left_out = 0;
    int rc = weft_host_nics(host, &nics, &nic_count, &left_out);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "%s: NICs of the host", name);
    }
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    rc = weft_machine_new(name, device_count, nic_count, &m, err);
    if (rc < 0) {
        return rc;
    }
    if (nic_count > 0) {
        memcpy(m->nics, nics, nic_count * sizeof(*nics));
    }
    if (left_out > 0 && weft_machine_warn(m, "%zu NICs are left out, at most %d are handled",
                                          left_out, (int)WEFT_MACHINE_NICS_MAX) < 0) {
        return weft_err_nomem(err);
    }
    *ret_machine = weft_steal(&m);
    return 0;
}

static void fill_device(struct weft_device *d, const struct weft_host_pci *pci)
{
    char label[16];
    const int n = snprintf(label, sizeof(label), "%d", pci->numa_node);
    weft_device_set_numa(d, label, (size_t)n);
    d->socket = pci->socket;
    d->pci_class = pci->class_code;
    const bool known = d->pcie.generation != 0 || d->pcie.width != 0 ||
                       d->pcie.max_generation != 0 || d->pcie.max_width != 0;
    if (!known) {
        d->pcie = pci->pcie;
    }
}

/* Reads the function of every device; known[i] says whether the host has it. */
static int fill_devices(const struct weft_host *host, struct weft_machine *m,
                        struct weft_host_pci *pcis, bool *known)
{
    for (size_t i = 0; i < m->device_count; i++) {
        struct weft_device *d = &m->devices[i];
        /* the partitions of one GPU stand together and share its function */
        const bool same = i > 0 && known[i - 1] && d->bdf.known &&
                          weft_bdf_cmp(&d->bdf, &m->devices[i - 1].bdf) == 0;
        int rc = 0;
        if (same) {
            pcis[i] = pcis[i - 1];
        } else {
            rc = weft_host_pci(host, &d->bdf, &pcis[i]);
        }
        known[i] = rc == 0;
        if (known[i]) {
            fill_device(d, &pcis[i]);
        } else if (rc == -ENOMEM) {
            return rc;
        } else if (weft_machine_warn(m, "%s: the host's sysfs does not show its PCI function",
                                     d->id) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

static void fill_t(struct weft_machine *m, const struct weft_host_pci *pcis, const bool *known)
{
    for (size_t i = 0; i < m->device_count; i++) {
        for (size_t j = i + 1; j < m->device_count; j++) {
            const bool both = known[i] && known[j];
            const struct weft_reading reading = {
                .bandwidth = weft_machine_b(m, i, j),
                .distance = both ? weft_host_distance(&pcis[i], &pcis[j]) : WEFT_DISTANCE_UNKNOWN};
            (void)weft_machine_set_pair(m, i, j, reading, reading);
        }
    }
}

static int fill_n(const struct weft_host *host, struct weft_machine *m,
                  const struct weft_host_pci *pcis, const bool *known)
{
    for (size_t n = 0; n < m->nic_count; n++) {
        struct weft_host_pci nic;
        const int rc = weft_host_pci(host, &m->nics[n].bdf, &nic);
        if (rc == -ENOMEM) {
            return rc;
        }
        for (size_t i = 0; i < m->device_count; i++) {
            const int distance =
                rc == 0 && known[i] ? weft_host_distance(&pcis[i], &nic) : WEFT_DISTANCE_UNKNOWN;
            weft_machine_set_nic(m, i, n, distance);
        }
    }
    return 0;
}

int weft_host_wire(const struct weft_host *host, struct weft_machine *m, struct weft_error *err)
{
    weft_autofree struct weft_host_pci *pcis = weft_calloc(m->device_count, sizeof(*pcis));
    weft_autofree bool *known = weft_calloc(m->device_count, sizeof(*known));
    if (pcis == NULL || known == NULL) {
        return weft_err_nomem(err);
    }
    int rc = fill_devices(host, m, pcis, known);
    if (rc == 0) {
        weft_machine_group_numa(m);
        fill_t(m, pcis, known);
        rc = fill_n(host, m, pcis, known);
    }
    return rc < 0 ? weft_err_nomem(err) : 0;
}
