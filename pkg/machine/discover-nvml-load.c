/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading NVIDIA's management library. It is never linked: a node without a driver
 * runs the same program. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pkg/machine/discover-nvml-internal.h"

struct symbol {
    const char *newest, *older, *lost;
    size_t offset; /* in struct weft_nvml_api */
};

#define SYMBOL(name, parameters, newest, older, lost)                                              \
    {newest, older, lost, offsetof(struct weft_nvml_api, name)},
static const struct symbol symbols[] = {WEFT_NVML_FUNCTIONS(SYMBOL)};

/* Where distributions, the driver container and WSL put libraries. */
static const char *const folders[] = {"/usr/lib64", "/usr/lib/x86_64-linux-gnu",
                                      "/usr/lib/aarch64-linux-gnu", "/usr/lib", "/usr/lib/wsl/lib"};
#define DRIVER_CONTAINER "/run/nvidia/driver"

/* RTLD_LOCAL, as the library brings symbols of its own; never RTLD_DEEPBIND, which the address
 * sanitizer cannot live with. */
static bool load_path(struct weft_nvml *nvml, const char *path)
{
    weft_backend_enter(nvml->options.watch, "dlopen", 0);
    nvml->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    weft_backend_leave(nvml->options.watch);
    return nvml->library != NULL;
}

static bool load_below(struct weft_nvml *nvml, const char *root)
{
    for (size_t i = 0; i < WEFT_ARRAY_LEN(folders); i++) {
        char path[PATH_MAX];
        const int n = snprintf(path, sizeof(path), "%s%s/" WEFT_NVML_LIBRARY, root, folders[i]);
        /* what dlopen says of a file that is not there is of no use to anybody */
        if (n > 0 && n < (int)sizeof(path) && access(path, R_OK) == 0 && load_path(nvml, path)) {
            return true;
        }
    }
    return false;
}

/* The plain name first: a container runtime that puts the library in place knows best. An empty
 * root is this file system, whose library folders the loader may not know. */
static bool search(struct weft_nvml *nvml, const char *driver_root, const char *host_root)
{
    const char *const roots[] = {driver_root, host_root, DRIVER_CONTAINER, ""};
    bool found = load_path(nvml, WEFT_NVML_LIBRARY);
    for (size_t i = 0; !found && i < WEFT_ARRAY_LEN(roots); i++) {
        found = load_below(nvml, roots[i]);
    }
    return found;
}

static int find_library(struct weft_nvml *nvml, struct weft_error *err)
{
    const struct weft_backend_options *o = &nvml->options;
    const char *driver = o->driver_root != NULL ? o->driver_root : "";
    const char *host = o->host_root != NULL ? o->host_root : "";
    if (o->library != NULL) {
        return load_path(nvml, o->library)
                   ? 0
                   : weft_err_set(err, -ENODEV, WEFT_ERR_NVML, "%s cannot be loaded", o->library);
    }
    if (search(nvml, driver, host)) {
        return 0;
    }
    return weft_err_set(err, -ENODEV, WEFT_ERR_NVML,
                        "the driver's " WEFT_NVML_LIBRARY " was not found: not on the loader's "
                        "path, not below " DRIVER_CONTAINER " %.60s %.60s",
                        driver, host);
}

static void *look_up(void *library, const struct symbol *symbol)
{
    void *found = dlsym(library, symbol->newest);
    return found == NULL && symbol->older != NULL ? dlsym(library, symbol->older) : found;
}

int weft_nvml_load(struct weft_nvml *nvml, struct weft_error *err)
{
    const int rc = find_library(nvml, err);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < WEFT_ARRAY_LEN(symbols); i++) {
        void *found = look_up(nvml->library, &symbols[i]);
        if (found == NULL && symbols[i].lost != NULL && symbols[i].lost[0] == '\0') {
            return weft_err_set(err, -ENODEV, WEFT_ERR_NVML,
                                "the driver's library lacks %s, without which nothing can be asked",
                                symbols[i].newest);
        }
        /* POSIX: a pointer from dlsym is a function's as well as an object's */
        memcpy((char *)&nvml->api + symbols[i].offset, &found, sizeof(found));
    }
    return 0;
}

void weft_nvml_unload(struct weft_nvml *nvml)
{
    if (nvml->initialized) {
        (void)WEFT_NVML_CALL(nvml, Shutdown);
        nvml->initialized = false;
    }
    if (nvml->library != NULL) {
        (void)dlclose(nvml->library);
        nvml->library = NULL;
    }
}

int weft_nvml_warn_lacking(const struct weft_nvml *nvml, struct weft_machine *machine)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < WEFT_ARRAY_LEN(symbols); i++) {
        void *found = NULL;
        memcpy(&found, (const char *)&nvml->api + symbols[i].offset, sizeof(found));
        if (found == NULL && symbols[i].lost != NULL) {
            rc = weft_machine_warn(machine, "the driver's library lacks %s: %s", symbols[i].newest,
                                   symbols[i].lost);
        }
    }
    return rc;
}

const char *weft_nvml_reason(int rc)
{
    static const struct {
        int rc;
        const char *reason;
    } reasons[] = {
        {WEFT_NVML_UNINITIALIZED, "the driver's library lost its connection to the driver"},
        {WEFT_NVML_NOT_SUPPORTED, "the driver does not support it"},
        {WEFT_NVML_NO_PERMISSION, "the driver does not permit it to this process"},
        {WEFT_NVML_DRIVER_NOT_LOADED, "the driver is not loaded"},
        {WEFT_NVML_TIMEOUT, "the driver did not answer in its own time limit"},
        {WEFT_NVML_LIBRARY_NOT_FOUND, "a library of the driver is missing"},
        {WEFT_NVML_FUNCTION_NOT_FOUND, "the driver's library lacks it"},
        {WEFT_NVML_GPU_IS_LOST, "the GPU is lost: it has fallen off the bus or does not answer"},
        {WEFT_NVML_RESET_REQUIRED, "the GPU needs a reset"},
        {WEFT_NVML_LIB_RM_VERSION_MISMATCH,
         "the driver and its library differ in version: was the driver updated without a restart?"},
    };
    for (size_t i = 0; i < WEFT_ARRAY_LEN(reasons); i++) {
        if (reasons[i].rc == rc) {
            return reasons[i].reason;
        }
    }
    return "the driver reports an error of its own";
}
