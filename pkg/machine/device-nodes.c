/* SPDX-License-Identifier: Apache-2.0 */
/* Is what a container needs of a device in /dev? A container that is given a node that is not there
 * does not start, and one that lacks it finds no device: such a device must not be handed out. */
#include <stdio.h>
#include <string.h>

#include "pkg/machine/host.h"
#include "pkg/machine/machine-internal.h"

void weft_device_lacks(struct weft_device *device, const char *path, const char *what)
{
    if (device->healthy) {
        device->healthy = false;
        (void)snprintf(device->health_reason, sizeof(device->health_reason), "%.60s %s", path,
                       what);
    }
}

void weft_device_check_node(const struct weft_host *host, const char *path,
                            struct weft_device *device)
{
    char folder[WEFT_MACHINE_PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
    if (weft_host_exists(host, folder) && !weft_host_exists(host, path)) {
        weft_device_lacks(device, path, "is not there");
    }
}
