/* SPDX-License-Identifier: Apache-2.0 */
/* Moore Threads GPUs: from the vendor's library where it can be loaded, else from sysfs, which has
 * neither UUIDs nor MTLink nor MPC partitions. Not yet run on hardware: docs/hardware.md. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "pkg/base/str.h"
#include "pkg/machine/discover-mthreads-internal.h"
#include "pkg/machine/discover-sysfs.h"
#include "pkg/machine/host-internal.h"
#include "pkg/machine/machine-internal.h"

enum { VENDOR_MTHREADS = 0x1ed5, BYTES_PER_MIB = 1 << 20, PCIE_GENERATIONS = 16, PCIE_WIDTHS = 33 };

static bool probe(const struct weft_backend_options *options)
{
    return weft_backend_host_has(options, "/sys/bus/pci/drivers/mtgpu") ||
           weft_backend_host_has(options, "/sys/module/mtgpu") ||
           weft_backend_host_has(options, "/dev/mtgpu.0");
}

static int set_vendor(struct weft_machine *m, struct weft_error *err)
{
    char *vendor = weft_strdup("mthreads");
    if (vendor == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(m->vendor);
    m->vendor = vendor;
    return 0;
}

/* ---- with the library ---- */

static bool read_uuid(const struct weft_mtml *mtml, struct weft_mtml_unit *unit)
{
    char text[WEFT_MTML_UUID_SIZE + 1] = "";
    if (WEFT_MTML_CALL(mtml, uuid, unit->device, text, WEFT_MTML_UUID_SIZE) != WEFT_MTML_OK) {
        return false;
    }
    (void)weft_machine_copy_visible(unit->uuid, sizeof(unit->uuid), text,
                                    strnlen(text, sizeof(text) - 1));
    return weft_device_id_valid(unit->uuid);
}

static void add_unit(const struct weft_mtml *mtml, struct weft_mtml_units *units,
                     struct weft_mtml_unit unit)
{
    if (unit.device != NULL && read_uuid(mtml, &unit)) {
        units->items[units->count++] = unit;
    } else {
        units->silent++;
    }
}

/* The MPC instances of a GPU; without any the GPU itself. */
static void add_gpu(const struct weft_mtml *mtml, struct weft_mtml_units *units,
                    struct weft_mtml_device *gpu, int number)
{
    unsigned instances = 0;
    if (WEFT_MTML_CALL(mtml, instance_count, gpu, &instances) != WEFT_MTML_OK) {
        instances = 0;
    }
    if (instances == 0) {
        add_unit(mtml, units, (struct weft_mtml_unit){.device = gpu, .gpu = gpu, .number = number});
    }
    for (unsigned i = 0; i < instances && i < WEFT_MTML_INSTANCES_MAX; i++) {
        struct weft_mtml_device *instance = NULL;
        if (WEFT_MTML_CALL(mtml, instance, gpu, i, &instance) != WEFT_MTML_OK) {
            instance = NULL;
        }
        add_unit(mtml, units,
                 (struct weft_mtml_unit){.device = instance,
                                         .gpu = gpu,
                                         .number = number,
                                         .is_instance = true,
                                         .partition = (int)i});
    }
}

/* Asks for all devices. 0, or -EIO if the library does not even count them. */
static int open_units(const struct weft_mtml *mtml, struct weft_mtml_units *units,
                      struct weft_error *err)
{
    unsigned count = 0;
    const unsigned code = WEFT_MTML_CALL(mtml, count, mtml->library, &count);
    if (code != WEFT_MTML_OK) {
        return weft_err_set(err, -EIO, WEFT_ERR_CONFIG,
                            "libmtml.so: error %u instead of the number of GPUs", code);
    }
    for (unsigned i = 0; i < count && i < WEFT_MTML_GPUS_MAX; i++) {
        struct weft_mtml_device *gpu = NULL;
        if (WEFT_MTML_CALL(mtml, device, mtml->library, i, &gpu) == WEFT_MTML_OK) {
            units->gpus[units->gpu_count++] = gpu;
            add_gpu(mtml, units, gpu, (int)i);
        } else {
            units->silent++;
        }
    }
    return 0;
}

static void close_units(const struct weft_mtml *mtml, const struct weft_mtml_units *units)
{
    for (size_t i = 0; i < units->gpu_count; i++) {
        (void)WEFT_MTML_CALL(mtml, free_device, units->gpus[i]);
    }
}

static uint8_t small(uint32_t value, uint32_t limit)
{
    return (uint8_t)(value < limit ? value : 0);
}

static void read_address(const struct weft_mtml *mtml, const struct weft_mtml_device *gpu,
                         struct weft_device *d)
{
    struct weft_mtml_pci pci = {0};
    if (WEFT_MTML_CALL(mtml, pci, gpu, &pci) != WEFT_MTML_OK) {
        return;
    }
    pci.address[sizeof(pci.address) - 1] = '\0';
    struct weft_bdf bdf;
    if (weft_bdf_parse(pci.address, &bdf) == 0) {
        d->bdf = bdf;
    }
    d->pcie = (struct weft_pcie){.generation = small(pci.generation, PCIE_GENERATIONS),
                                 .width = small(pci.width, PCIE_WIDTHS),
                                 .max_generation = small(pci.max_generation, PCIE_GENERATIONS),
                                 .max_width = small(pci.max_width, PCIE_WIDTHS)};
}

static int add_path(struct weft_device *d, const char *path)
{
    if (path[0] != '/') {
        return 0;
    }
    for (size_t i = 0; i < d->node_count; i++) {
        if (strcmp(d->nodes[i], path) == 0) {
            return 0;
        }
    }
    return weft_machine_add_node(d, path);
}

static int read_paths(const struct weft_mtml *mtml, const struct weft_mtml_unit *unit,
                      struct weft_device *d)
{
    char path[WEFT_MTML_PATH_SIZE + 1];
    unsigned (*const ask[])(const struct weft_mtml_device *, char *,
                            unsigned) = {mtml->gpu_path, mtml->card_path, mtml->render_path};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < WEFT_ARRAY_LEN(ask); i++) {
        memset(path, 0, sizeof(path));
        weft_backend_enter(mtml->options->watch, "mtml path", 0);
        const unsigned code = ask[i] == NULL ? WEFT_MTML_NOT_SUPPORTED
                                             : ask[i](unit->device, path, WEFT_MTML_PATH_SIZE);
        weft_backend_leave(mtml->options->watch);
        rc = code == WEFT_MTML_OK ? add_path(d, path) : 0;
    }
    return rc;
}

static uint64_t read_memory(const struct weft_mtml *mtml, const struct weft_mtml_unit *unit)
{
    struct weft_mtml_memory *memory = NULL;
    uint64_t bytes = 0;
    if (WEFT_MTML_CALL(mtml, memory, unit->device, &memory) != WEFT_MTML_OK) {
        return 0;
    }
    if (WEFT_MTML_CALL(mtml, memory_total, memory, &bytes) != WEFT_MTML_OK) {
        bytes = 0;
    }
    (void)WEFT_MTML_CALL(mtml, free_memory, memory);
    return bytes / BYTES_PER_MIB;
}

static void read_name(const struct weft_mtml *mtml, const struct weft_mtml_unit *unit,
                      struct weft_device *d)
{
    char text[WEFT_MTML_NAME_SIZE + 1] = "";
    if (WEFT_MTML_CALL(mtml, name, unit->device, text, WEFT_MTML_NAME_SIZE) != WEFT_MTML_OK) {
        return;
    }
    for (size_t i = 0; i < sizeof(text) && text[i] != '\0'; i++) {
        d->model[i] = (char)(text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
    }
}

static void read_profile(const struct weft_mtml *mtml, const struct weft_mtml_unit *unit,
                         struct weft_device *d)
{
    struct weft_mtml_profile profile = {0};
    (void)snprintf(d->profile, sizeof(d->profile), "mpc");
    if (WEFT_MTML_CALL(mtml, profile, unit->device, &profile) != WEFT_MTML_OK) {
        return;
    }
    profile.name[sizeof(profile.name) - 1] = '\0';
    if (profile.name[0] != '\0') {
        (void)weft_machine_copy_visible(d->profile, sizeof(d->profile), profile.name,
                                        strlen(profile.name));
    }
    d->memory_mib = profile.memory_mib > 0 ? profile.memory_mib : d->memory_mib;
}

static int fill_unit(const struct weft_mtml *mtml, const struct weft_mtml_unit *unit,
                     struct weft_device *d)
{
    (void)snprintf(d->id, sizeof(d->id), "%s", unit->uuid);
    read_name(mtml, unit, d);
    read_address(mtml, unit->gpu, d);
    d->memory_mib = read_memory(mtml, unit);
    if (unit->is_instance) {
        d->parent = unit->number;
        d->partition = unit->partition;
        read_profile(mtml, unit, d);
    } else {
        d->index = unit->number;
    }
    return read_paths(mtml, unit, d);
}

static void read_driver_version(const struct weft_mtml *mtml, struct weft_machine *m)
{
    struct weft_mtml_system *system = NULL;
    char text[WEFT_MTML_VERSION_SIZE + 1] = "";
    if (WEFT_MTML_CALL(mtml, system, mtml->library, &system) != WEFT_MTML_OK) {
        return;
    }
    if (WEFT_MTML_CALL(mtml, driver_version, system, text, WEFT_MTML_VERSION_SIZE) ==
        WEFT_MTML_OK) {
        (void)weft_machine_copy_visible(m->driver_version, sizeof(m->driver_version), text,
                                        strnlen(text, sizeof(text) - 1));
    }
    (void)WEFT_MTML_CALL(mtml, free_system, system);
}

static int fill_units(const struct weft_mtml *mtml, const struct weft_mtml_units *units,
                      struct weft_machine *m, struct weft_error *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < units->count; i++) {
        rc = fill_unit(mtml, &units->items[i], &m->devices[i]);
    }
    if (rc == 0 && units->silent > 0) {
        rc = weft_machine_warn(m, "%zu devices do not answer", units->silent);
    }
    rc = rc < 0 ? rc : weft_host_wire(mtml->host, m, err);
    rc = rc < 0 ? rc : weft_mtml_set_links(mtml, units, m);
    read_driver_version(mtml, m);
    return rc < 0 ? weft_err_nomem(err) : weft_machine_finish(m, err);
}

static int from_library(const struct weft_mtml *mtml, struct weft_machine **ret_machine,
                        struct weft_error *err)
{
    weft_autofree struct weft_mtml_units *units = weft_calloc(1, sizeof(*units));
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    if (units == NULL) {
        return weft_err_nomem(err);
    }
    int rc = open_units(mtml, units, err);
    if (rc == 0) {
        rc = weft_host_machine(mtml->host, "this machine", units->count, &m, err);
        rc = rc < 0 ? rc : set_vendor(m, err);
        rc = rc < 0 ? rc : fill_units(mtml, units, m, err);
        close_units(mtml, units);
    }
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

/* ---- without it ---- */

static int fill_function(const struct weft_mtml *mtml, const struct weft_host_pci *pci,
                         struct weft_device *d)
{
    char path[WEFT_MACHINE_PATH_MAX];
    d->bdf = pci->bdf;
    (void)weft_bdf_format(&pci->bdf, d->id);
    if (pci->driver[0] == '\0') {
        d->healthy = false;
        (void)snprintf(d->health_reason, sizeof(d->health_reason), "no driver is bound to it");
    }
    (void)snprintf(path, sizeof(path), "/dev/mtgpu.%d", d->index);
    int rc = weft_host_exists(mtml->host, path) ? weft_machine_add_node(d, path) : 0;
    if (rc == 0 && pci->card >= 0) {
        (void)snprintf(path, sizeof(path), "/dev/dri/card%d", pci->card);
        weft_device_check_node(mtml->host, path, d);
        rc = weft_machine_add_node(d, path);
    }
    if (rc == 0 && pci->render >= 0) {
        (void)snprintf(path, sizeof(path), "/dev/dri/renderD%d", pci->render);
        weft_device_check_node(mtml->host, path, d);
        rc = weft_machine_add_node(d, path);
    }
    return rc;
}

/* Those that are given to VMs are not for containers. */
static size_t drop_passed_through(struct weft_host_pci *pcis, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pcis[i].driver, "vfio-pci") != 0) {
            pcis[kept++] = pcis[i];
        }
    }
    return kept;
}

static int from_sysfs(const struct weft_mtml *mtml, struct weft_machine **ret_machine,
                      struct weft_error *err)
{
    weft_autofree struct weft_host_pci *pcis = NULL;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    size_t count = 0;
    int rc = weft_host_find_gpus(mtml->host, VENDOR_MTHREADS, &pcis, &count);
    if (rc < 0) {
        return weft_err_errno(err, -rc, "PCI functions of the host");
    }
    count = drop_passed_through(pcis, count);
    rc = weft_host_machine(mtml->host, "this machine", count, &m, err);
    rc = rc < 0 ? rc : set_vendor(m, err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = fill_function(mtml, &pcis[i], &m->devices[i]);
    }
    if (rc == 0) {
        rc =
            weft_machine_warn(m, "%s: UUIDs, MTLink and MPC partitions are unknown", mtml->why_not);
    }
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    rc = weft_host_wire(mtml->host, m, err);
    rc = rc < 0 ? rc : weft_machine_finish(m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

/* ---- the backend ---- */

static void close_state(void *state)
{
    struct weft_mtml *mtml = state;
    if (mtml != NULL) {
        weft_mtml_unload(mtml);
        weft_host_free(mtml->host);
        weft_machine_free(mtml->last);
        weft_free(mtml);
    }
}

static int open_state(const struct weft_backend_options *options, void **ret_state,
                      struct weft_error *err)
{
    struct weft_mtml *mtml = weft_calloc(1, sizeof(*mtml));
    if (mtml == NULL) {
        return weft_err_nomem(err);
    }
    mtml->options = options;
    const char *root = options->host_root;
    const int rc = weft_host_open(root == NULL || root[0] == '\0' ? "/" : root, &mtml->host, err);
    if (rc < 0) {
        close_state(mtml);
        return rc;
    }
    weft_mtml_load(mtml);
    *ret_state = mtml;
    return 0;
}

static int enumerate(void *state, struct weft_machine **ret_machine, struct weft_error *err)
{
    struct weft_mtml *mtml = state;
    weft_auto(weft_machine_free) struct weft_machine *m = NULL;
    int rc = mtml->handle != NULL ? from_library(mtml, &m, err) : from_sysfs(mtml, &m, err);
    if (rc == 0) {
        weft_sysfs_mark_dead(mtml->host, m);
    }
    rc = rc < 0 ? rc : weft_sysfs_keep_lost(&mtml->last, &m, err);
    if (rc == 0) {
        *ret_machine = weft_steal(&m);
    }
    return rc;
}

const struct weft_backend weft_backend_mthreads = {.vendor = "mthreads",
                                                   .probe = probe,
                                                   .open = open_state,
                                                   .enumerate = enumerate,
                                                   .close = close_state};
