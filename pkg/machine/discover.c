/* SPDX-License-Identifier: Apache-2.0 */
/* The list of backends and the first of them that finds a device. */
#include "pkg/machine/discover.h"

#include <errno.h>
#include <string.h>

#include "pkg/base/buf.h"
#include "pkg/machine/discover-mthreads-internal.h"
#include "pkg/machine/discover-nvml.h"
#include "pkg/machine/discover-sysfs.h"

/* A node has one vendor's accelerators; where it has two (a GPU beside the CPU's own graphics), the
 * one that is sold as an accelerator comes first. */
const struct weft_backend *const weft_backends[] = {
    &weft_backend_nvml, &weft_backend_amd, &weft_backend_mthreads, &weft_backend_intel, NULL,
};

static bool wanted(const struct weft_backend *backend, const struct weft_backend_options *options)
{
    return options->vendor == NULL || strcmp(backend->vendor, options->vendor) == 0;
}

static int check_vendor(const struct weft_backend *const *backends,
                        const struct weft_backend_options *options, struct weft_error *err)
{
    enum { NAMES_MAX = 256 };
    weft_auto(weft_buf_done) struct weft_buf names;
    weft_buf_init(&names, NAMES_MAX);
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (wanted(backends[i], options)) {
            return 0;
        }
        (void)weft_buf_printf(&names, "%s%s", i > 0 ? ", " : "", backends[i]->vendor);
    }
    return options->vendor == NULL
               ? 0
               : weft_err_set(err, -EINVAL, WEFT_ERR_CONFIG,
                              "\"%.40s\" is no vendor that weft can ask, which are: %s",
                              options->vendor, weft_buf_text(&names));
}

/* A node that is said to be of one vendor is so without a device too: its resource has a name. */
static int set_vendor(struct weft_machine *nothing, const char *vendor, struct weft_error *err)
{
    if (vendor == NULL) {
        return 0;
    }
    char *copy = weft_strdup(vendor);
    if (copy == NULL) {
        return weft_err_nomem(err);
    }
    weft_free(nothing->vendor);
    nothing->vendor = copy;
    return 0;
}

/* Moves the reasons of a machine without devices to the one that is handed out. */
static int keep_reasons(struct weft_machine *nothing, const struct weft_machine *machine,
                        const char *vendor)
{
    const size_t count = machine != NULL ? machine->warning_count : 0;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = weft_machine_warn(nothing, "%s: %s", vendor, machine->warnings[i]);
    }
    return rc == 0 && count == 0
               ? weft_machine_warn(nothing, "%s: the driver knows no device", vendor)
               : rc;
}

/* 1 and the machine if this backend finds devices; 0 and the reason among nothing's warnings. */
static int try_backend(const struct weft_backend *backend,
                       const struct weft_backend_options *options, struct weft_machine *nothing,
                       struct weft_backend_handle *ret_handle, struct weft_machine **ret_machine)
{
    struct weft_error why = {0};
    struct weft_backend_handle handle = {.backend = backend};
    weft_auto(weft_machine_free) struct weft_machine *machine = NULL;
    int rc = backend->open(options, &handle.state, &why);
    if (rc == 0) {
        rc = backend->enumerate(handle.state, &machine, &why);
        if (rc == 0 && machine->device_count > 0) {
            *ret_handle = handle;
            *ret_machine = weft_steal(&machine);
            return 1;
        }
        weft_backend_disconnect(&handle);
    }
    if (rc == -ENOMEM) {
        return rc;
    }
    return rc < 0 ? weft_machine_warn(nothing, "%s: %s", backend->vendor, why.message)
                  : keep_reasons(nothing, machine, backend->vendor);
}

int weft_backend_connect(const struct weft_backend *const *backends,
                         const struct weft_backend_options *options,
                         struct weft_backend_handle *ret_handle, struct weft_machine **ret_machine,
                         struct weft_error *err)
{
    *ret_handle = (struct weft_backend_handle){0};
    weft_auto(weft_machine_free) struct weft_machine *nothing = NULL;
    int rc = check_vendor(backends, options, err);
    rc = rc == 0 ? weft_machine_new("this machine", 0, 0, &nothing, err) : rc;
    rc = rc == 0 ? set_vendor(nothing, options->vendor, err) : rc;
    if (rc < 0) {
        return rc;
    }
    size_t tried = 0;
    for (size_t i = 0; rc == 0 && backends[i] != NULL; i++) {
        if (wanted(backends[i], options) && backends[i]->probe(options)) {
            tried++;
            rc = try_backend(backends[i], options, nothing, ret_handle, ret_machine);
        }
    }
    if (rc == 0 && tried == 0) {
        rc = weft_machine_warn(nothing, "no accelerator and no driver of one was found");
    }
    if (rc < 0) {
        return weft_err_nomem(err);
    }
    if (rc == 0) {
        *ret_machine = weft_steal(&nothing);
    }
    return 0;
}

void weft_backend_disconnect(struct weft_backend_handle *handle)
{
    if (handle->backend != NULL) {
        handle->backend->close(handle->state);
        *handle = (struct weft_backend_handle){0};
    }
}

bool weft_backend_probe(const struct weft_backend *const *backends,
                        const struct weft_backend_options *options)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (wanted(backends[i], options) && backends[i]->probe(options)) {
            return true;
        }
    }
    return false;
}

int weft_machine_discover(const struct weft_backend_options *options,
                          struct weft_machine **ret_machine, struct weft_error *err)
{
    struct weft_backend_handle handle = {0};
    int rc = weft_backend_check_root(options, err);
    if (rc < 0) {
        return rc;
    }
    rc = weft_backend_connect(weft_backends, options, &handle, ret_machine, err);
    weft_backend_disconnect(&handle);
    return rc;
}
