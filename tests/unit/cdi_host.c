/* SPDX-License-Identifier: Apache-2.0 */
/* Folders and files, the machine. */
#include "tests/unit/cdi_host.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pkg/base/file.h"
#include "tests/unit/unit.h"

char cdi_host_root[300];

void cdi_host_new(const char *name)
{
    (void)snprintf(cdi_host_root, sizeof(cdi_host_root), "%s/%s", weft_test_dir(), name);
    CHECK_INT(mkdir(cdi_host_root, 0755), 0);
}

/* A path below the root, with its folders made. */
const char *cdi_host_path(const char *path)
{
    static char whole[CDI_HOST_PATH];
    (void)snprintf(whole, sizeof(whole), "%s%s", cdi_host_root, path);
    for (char *p = whole + strlen(cdi_host_root) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        (void)mkdir(whole, 0755);
        *p = '/';
    }
    return whole;
}

void cdi_host_put(const char *path)
{
    CHECK_INT(weft_file_replace(cdi_host_path(path), "x", 1, 0644, NULL), 0);
}

void cdi_host_link(const char *path, const char *target)
{
    CHECK_INT(symlink(target, cdi_host_path(path)), 0);
}

/* Two GPUs, the second of which is partition 1 of GPU 1. */
struct weft_machine *cdi_host_machine(const char *vendor)
{
    struct weft_machine *m = NULL;
    CHECK_INT(weft_machine_new("test", 2, 0, &m, NULL), 0);
    weft_free(m->vendor);
    m->vendor = weft_strdup(vendor);
    (void)snprintf(m->driver_version, sizeof(m->driver_version), "550.54.15");
    (void)snprintf(m->devices[0].id, sizeof(m->devices[0].id), "GPU-a");
    (void)snprintf(m->devices[1].id, sizeof(m->devices[1].id), "MIG-b");
    m->devices[1].index = m->devices[1].parent = m->devices[1].partition = 1;
    CHECK_INT(weft_machine_add_node(&m->devices[0], "/dev/nvidia0"), 0);
    CHECK_INT(weft_machine_add_node(&m->devices[1], "/dev/nvidia1"), 0);
    CHECK_INT(weft_machine_add_node(&m->devices[1], "/dev/nvidia-caps/nvidia-cap12"), 0);
    CHECK_INT(weft_machine_add_common_node(m, "/dev/nvidiactl"), 0);
    return m;
}

/* Debian's layout: libcuda.so.1 leads over /etc/alternatives to the version's folder. */
void cdi_host_driver(void)
{
    cdi_host_put("/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.550.54.15");
    cdi_host_put("/usr/lib/x86_64-linux-gnu/nvidia/libnvidia-ml.so.550.54.15");
    cdi_host_put("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.1"); /* an older one that stayed */
    cdi_host_put("/usr/lib/x86_64-linux-gnu/libcudart.so.12");       /* not the driver's */
    cdi_host_put("/usr/lib/x86_64-linux-gnu/libc.so.6");
    cdi_host_link("/etc/alternatives/cuda",
                  "/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.550.54.15");
    cdi_host_link("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/etc/alternatives/cuda");
    cdi_host_link("/usr/lib/x86_64-linux-gnu/libcuda.so", "libcuda.so.1");
    cdi_host_link("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                  "nvidia/libnvidia-ml.so.550.54.15");
    cdi_host_link("/usr/lib/x86_64-linux-gnu/libnvidia-gone.so.1", "nvidia/gone.so.550.54.15");
    cdi_host_put("/usr/lib/x86_64-linux-gnu/vdpau/libvdpau_nvidia.so.550.54.15");
    cdi_host_put("/usr/bin/nvidia-smi");
    cdi_host_put("/run/nvidia-persistenced/socket");
    cdi_host_put("/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin");
    cdi_host_put("/lib/firmware/nvidia/550.54.15/README");
}
